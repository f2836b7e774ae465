// What every test without libtorch includes, compiled once.
#pragma once

#include "base/precompiled.h"

#include <gtest/gtest.h>

// What every test on libtorch includes, compiled once.
#pragma once

#include "engine/tensor.h"

#include <gtest/gtest.h>

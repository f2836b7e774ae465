// What every test on libtorch includes, compiled once.
#pragma once

#include <gtest/gtest.h>

#include "engine/tensor.h"

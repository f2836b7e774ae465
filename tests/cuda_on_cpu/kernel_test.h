// What tests of kernels share: memory that a kernel may use, numbers of each element type, and orders of threads.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <gtest/gtest.h>

#include "engine/kernels/device_kernels.h"
#include "tests/cuda_on_cpu/machine.h"

namespace decodelab::cuda_on_cpu {

inline double number_of(float value) { return static_cast<double>(value); }
inline double number_of(__half value) { return static_cast<double>(__half2float(value)); }
inline double number_of(__nv_bfloat16 value) { return static_cast<double>(__bfloat162float(value)); }

template <typename Element>
Element element_of(float value) {
  if constexpr (std::is_same_v<Element, __half>) {
    return __float2half_rn(value);
  } else if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}

/// The element type as kernels are told, and what rounding and another order of summation may change: of the largest
/// expected value.
template <typename Element>
struct OfElement;
template <>
struct OfElement<float> {
  static constexpr DeviceElement kType = DeviceElement::float32;
  static constexpr double kTolerance = 2e-6;
};
template <>
struct OfElement<__half> {
  static constexpr DeviceElement kType = DeviceElement::float16;
  static constexpr double kTolerance = 1e-3;
};
template <>
struct OfElement<__nv_bfloat16> {
  static constexpr DeviceElement kType = DeviceElement::bfloat16;
  static constexpr double kTolerance = 8e-3;
};

/// Device memory. An element that neither the host nor a kernel has written is NaN, and reading it is a fault.
template <typename T>
class Memory final {
 public:
  /// Begins `skew` bytes behind a multiple of 256.
  Memory(const std::string& name, std::int64_t count, std::size_t skew = 0)
      : region_(
            machine().regions().allocate(name, static_cast<std::size_t>(count) * sizeof(T), sizeof(T), false, skew)) {}
  Memory(const std::string& name, const std::vector<T>& values, std::size_t skew = 0)
      : Memory(name, static_cast<std::int64_t>(values.size()), skew) {
    for (std::int64_t index = 0; index < size(); ++index) {
      set(index, values[static_cast<std::size_t>(index)]);
    }
  }
  ~Memory() { machine().regions().release(region_.begin); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  T* data() const { return reinterpret_cast<T*>(region_.begin); }
  std::int64_t size() const { return static_cast<std::int64_t>(region_.cells.size()); }
  const T& operator[](std::int64_t index) const { return data()[index]; }
  double number(std::int64_t index) const { return number_of(data()[index]); }
  bool is_written(std::int64_t index) const {
    return region_.cells[static_cast<std::size_t>(index)].write.block != kNoBlock;
  }
  void set(std::int64_t index, T value) {
    data()[index] = value;
    region_.cells[static_cast<std::size_t>(index)] = {.write = {.block = kHostBlock}};
  }

 private:
  Region& region_;
};

/// Uniform numbers in [-scale, scale), the same in every run.
class Numbers final {
 public:
  template <typename Element>
  Element next(float scale = 1.0f) {
    return element_of<Element>(scale * std::uniform_real_distribution<float>(-1.0f, 1.0f)(bits_));
  }
  template <typename Element>
  std::vector<Element> next(std::int64_t count, float scale = 1.0f) {
    std::vector<Element> values(static_cast<std::size_t>(count));
    for (Element& value : values) {
      value = next<Element>(scale);
    }
    return values;
  }

 private:
  std::mt19937 bits_{7};
};

/// The largest difference from what was expected, and the largest expected value. A NaN in the result stays.
class Difference final {
 public:
  void add(double got, double expected) {
    const double off = std::abs(got - expected);
    largest_off_ = off <= largest_off_ ? largest_off_ : off;
    largest_expected_ = std::max(largest_expected_, std::abs(expected));
  }
  double relative() const { return largest_expected_ == 0.0 ? largest_off_ : largest_off_ / largest_expected_; }

 private:
  double largest_off_ = 0.0;
  double largest_expected_ = 0.0;
};

/// Fails where a kernel was at fault in a way that the test did not take.
class KernelTest : public ::testing::Test {
 protected:
  void TearDown() override {
    expect_no_faults();
    machine().set_order(0);
  }
  static void expect_no_faults() {
    for (const std::string& fault : machine().take_faults()) {
      ADD_FAILURE() << fault;
    }
  }
  /// Calls `check.operator()<Element>()` for each element type, with ascending blocks and threads and then in other
  /// orders.
  template <typename Check>
  static void in_every_type_and_order(const Check& check) {
    for (const std::uint64_t seed : {0, 1, 2}) {
      machine().set_order(seed);
      run<float>("float", seed, check);
      run<__half>("half", seed, check);
      run<__nv_bfloat16>("bfloat16", seed, check);
    }
  }
  /// Fails for each template of a kernel that this process has compiled and not launched.
  static void expect_all_launched(const std::string& kernel) {
    for (const std::string& name : machine().never_launched(kernel)) {
      ADD_FAILURE() << name << " was never launched: a shape that reaches it was expected";
    }
  }

 private:
  template <typename Element, typename Check>
  static void run(const char* type, std::uint64_t seed, const Check& check) {
    const ::testing::ScopedTrace trace(__FILE__, __LINE__, std::string(type) + ", order " + std::to_string(seed));
    check.template operator()<Element>();
    expect_no_faults();
  }
};

}  // namespace decodelab::cuda_on_cpu

// Shortens names for people: kernels lose their template arguments, and ranges the numbers behind them.
#pragma once

#include <string>
#include <string_view>

namespace decodelab {

/// Returns a name without return type, parameters, template arguments ("<...>") and unnamed namespaces, and without a
/// tail such as ", op_id = 12": `void at::native::f<float, 4>(int)` is `at::native::f<...>`. The data keeps the whole
/// name.
std::string short_name(std::string_view name);

/// Returns the short name of a range without what stands behind it in brackets: `FSDP::pre_forward (block.3)` is
/// `FSDP::pre_forward`.
std::string range_kind(std::string_view name);

}  // namespace decodelab

// Takes a kineto file apart event by event, so that a file of any size needs the memory of one event.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "profiles/trace/events.h"
#include "profiles/write/kineto_event.h"

namespace decodelab {

/// The members of a file other than its events.
struct KinetoFile {
  KinetoHead head;
  std::vector<TraceDevice> devices;
};
/// Passes the events of a file one by one to `take` and returns the other members. Throws std::runtime_error with what
/// is wrong, a sentence without its subject and full stop ("is not JSON: ..."). The head is complete when the first
/// event comes only if the file has it first; both kineto and we write it so. A file with a value of more than
/// `most_value_bytes` is refused.
KinetoFile parse_kineto(const std::filesystem::path& path, std::int64_t most_value_bytes,
                        const std::function<void(KinetoEvent&)>& take);

}  // namespace decodelab

// What is told of a process that has ended: how, and what it printed last.
#pragma once

#include <string>

namespace decodelab {

/// Returns how a process ended, from its status as waitpid() gives it: `ended with exit code 3`, `died of signal 9
/// (Killed), as the system does when memory runs out`.
std::string how_it_ended(int status);

/// Returns `; its last line: ...` from the end of the file behind a descriptor, or `; it printed nothing`.
std::string last_words_of(int log);

}  // namespace decodelab

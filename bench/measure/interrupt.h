// Turns SIGINT and SIGTERM into a flag that is looked at between blocks.
#pragma once

namespace decodelab {

/// From now on SIGINT and SIGTERM only set the flag; a second one ends the process as usual.
void catch_interrupts();
bool interrupted();

}  // namespace decodelab

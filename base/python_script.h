// The scripts of tools/ that the program has run, and the Python that runs them.
#pragma once

#include <string>
#include <vector>

namespace decodelab {

/// Returns the command that runs `script`, a file of tools/ such as "render_figures.py": the interpreter, then the path
/// of the script.
///
/// The script is the one in `tools` beside the folder of the program, where the Python package has it, else that of the
/// checkout that the program was built from. The interpreter is what the environment variable DECODELAB_PYTHON names,
/// which the package's launcher sets, else that of the checkout's virtual environment. Throws std::runtime_error, which
/// says what is not there.
std::vector<std::string> python_command(const std::string& script);

}  // namespace decodelab

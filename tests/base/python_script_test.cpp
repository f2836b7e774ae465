// Tests that scripts are found in the checkout, under the Python that is named, and that what is missing is told.
#include "base/python_script.h"

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

class PythonScript : public ::testing::Test {
 protected:
  PythonScript() {
    if (const char* before = std::getenv(kVariable)) {
      before_ = before;
    }
  }
  ~PythonScript() override { before_ ? setenv(kVariable, before_->c_str(), 1) : unsetenv(kVariable); }

  static std::string refusal(const std::string& script) {
    try {
      python_command(script);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  static constexpr const char* kVariable = "DECODELAB_PYTHON";

 private:
  std::optional<std::string> before_;
};

TEST_F(PythonScript, IsThatOfTheCheckoutUnderTheNamedPython) {
  setenv(kVariable, "/bin/sh", 1);
  const std::vector<std::string> command = python_command("render_figures.py");
  ASSERT_EQ(command.size(), 2U);
  EXPECT_EQ(command[0], "/bin/sh");
  EXPECT_TRUE(command[1].ends_with("/tools/render_figures.py")) << command[1];
  EXPECT_TRUE(std::filesystem::exists(command[1]));
}

TEST_F(PythonScript, SaysWhichFileIsMissing) {
  setenv(kVariable, "/bin/sh", 1);
  EXPECT_NE(refusal("no_script.py").find("/tools/no_script.py' does not exist"), std::string::npos);
  setenv(kVariable, "/nonexistent/python", 1);
  EXPECT_EQ(refusal("render_figures.py"), "'/nonexistent/python' does not exist");
  setenv(kVariable, "", 1);
  EXPECT_EQ(refusal("render_figures.py"), "this build knows no Python");
}

}  // namespace
}  // namespace decodelab

// Reads a file with zlib, which passes on what is no gzip.
#include "profiles/write/gzip_input.h"

#include <stdexcept>
#include <string>

namespace decodelab {

GzipInput::GzipInput(const std::filesystem::path& path, std::int64_t most_unread)
    : file_(gzopen(path.c_str(), "rb")), most_unread_(most_unread) {
  if (file_ == nullptr) {
    throw std::runtime_error("cannot be opened");
  }
}

GzipInput::~GzipInput() { gzclose(file_); }

GzipInput::int_type GzipInput::underflow() {
  const int count = gzread(file_, block_.data(), static_cast<unsigned>(block_.size()));
  int error = Z_OK;
  const char* reason = gzerror(file_, &error);
  if (count < 0 || error == Z_BUF_ERROR) {
    throw std::runtime_error(error == Z_BUF_ERROR ? "is cut: its gzip stream has no end"
                                                  : std::string("is damaged: gzip says '") + reason + "'");
  }
  if (count == 0) {
    return traits_type::eof();
  }
  unread_ += count;
  if (unread_ > most_unread_) {
    throw std::runtime_error("has a single value of more than " + std::to_string(most_unread_) + " bytes");
  }
  setg(block_.data(), block_.data(), block_.data() + count);
  return traits_type::to_int_type(block_.front());
}

}  // namespace decodelab

// URLs are cut into their parts, and anything else is refused in a sentence.
#include "bench/measure/serving/http_address.h"

#include <stdexcept>

#include <gtest/gtest.h>

namespace decodelab {
namespace {

TEST(HttpAddress, IsReadFromAUrl) {
  EXPECT_EQ(parse_http_address("--url", "http://127.0.0.1:8080"), (HttpAddress{.host = "127.0.0.1", .port = 8080}));
  EXPECT_EQ(parse_http_address("--url", "http://localhost"), (HttpAddress{.host = "localhost", .port = 80}));
  EXPECT_EQ(parse_http_address("--url", "http://a.b:1/v1/"), (HttpAddress{.host = "a.b", .port = 1, .path = "/v1"}));
  EXPECT_EQ(parse_http_address("--url", "http://[::1]:65535/"), (HttpAddress{.host = "::1", .port = 65535}));
}

TEST(HttpAddress, IsWrittenAsItIsRead) {
  for (const char* url : {"http://127.0.0.1:8080", "http://[::1]:9/v1", "http://h:80/a/b"}) {
    EXPECT_EQ(to_string(parse_http_address("--url", url)), url);
  }
  EXPECT_EQ(host_field({.host = "::1", .port = 9}), "[::1]:9");
}

TEST(HttpAddress, RefusesWhatNobodyCanConnectTo) {
  for (const char* url :
       {"", "127.0.0.1:8080", "https://h", "http://", "http://:80", "http://h:", "http://h:0", "http://h:65536",
        "http://h:8x", "http://h:-1", "http://[::1", "http://[::1]8", "http://u:p@h", "http://h/?q", "http://h/#f",
        "http://h/a b", "http://h/\r\nX: y", "http://h\x01"}) {
    try {
      parse_http_address("--url", url);
      FAIL() << url;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("expected http://HOST:PORT"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find("--url"), 0U) << error.what();
    }
  }
}

}  // namespace
}  // namespace decodelab

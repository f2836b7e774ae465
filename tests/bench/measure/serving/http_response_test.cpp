// A response is the same however its bytes are cut, and what is none says why.
#include "bench/measure/serving/http_response.h"

#include <gtest/gtest.h>

#include "tests/engine/checkpoint/mutator.h"

namespace decodelab {
namespace {

const std::string kChunked =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding:  chunked \r\n\r\n"
    "5\r\nhello\r\n7;name=value\r\n, world\r\n0\r\nTrailer: x\r\n\r\n";
const std::string kCounted = "HTTP/1.1 404 Not Found\ncontent-length: 4\nX-Y: a:b\n\nnone";
const std::string kInterim = "HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";

/// Feeds the pieces and returns the response, which is ended where it says so itself.
HttpResponse fed_response(const std::vector<std::string>& pieces) {
  HttpResponse response;
  for (const std::string& piece : pieces) {
    response.feed(piece);
  }
  return response;
}

std::string response_error(const std::string& bytes) {
  try {
    HttpResponse response;
    response.feed(bytes);
    response.end();
  } catch (const HttpError& error) {
    return error.what();
  }
  return "";
}

void expect_chunked(const HttpResponse& response) {
  EXPECT_TRUE(response.done());
  EXPECT_EQ(response.status(), 200);
  EXPECT_EQ(response.reason(), "OK");
  EXPECT_EQ(response.body(), "hello, world");
  EXPECT_EQ(response.field("content-type"), "text/event-stream");
  EXPECT_FALSE(response.field("content-length"));
}

TEST(HttpResponse, IsTheSameWhereverItIsCutInTwo) {
  for (std::size_t cut = 0; cut <= kChunked.size(); ++cut) {
    expect_chunked(fed_response({kChunked.substr(0, cut), kChunked.substr(cut)}));
  }
  for (std::size_t cut = 0; cut <= kCounted.size(); ++cut) {
    const HttpResponse response = fed_response({kCounted.substr(0, cut), kCounted.substr(cut)});
    EXPECT_TRUE(response.done());
    EXPECT_EQ(response.status(), 404);
    EXPECT_EQ(response.body(), "none");
    EXPECT_EQ(response.field("x-y"), "a:b");
  }
}

TEST(HttpResponse, IsTheSameByteByByteAndInRandomPieces) {
  HttpResponse bytewise;
  for (const char c : kChunked) {
    EXPECT_FALSE(bytewise.done());
    bytewise.feed(std::string(1, c));
  }
  expect_chunked(bytewise);
  for (std::uint64_t round = 0; round < 200; ++round) {
    Mutator random(round);
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < kChunked.size();) {
      const std::size_t length = 1 + random.below(20);
      pieces.push_back(kChunked.substr(at, length));
      at += length;
    }
    expect_chunked(fed_response(pieces));
  }
}

TEST(HttpResponse, EndsWithTheConnectionWhereNothingElseFramesItsBody) {
  HttpResponse response = fed_response({"HTTP/1.0 200\r\n\r\nsome", "thing"});
  EXPECT_FALSE(response.done());
  response.end();
  EXPECT_TRUE(response.done());
  EXPECT_EQ(response.body(), "something");
  EXPECT_EQ(response.reason(), "");
}

TEST(HttpResponse, SkipsInterimResponsesAndLeavesWhatIsBehindIt) {
  const HttpResponse response = fed_response({kInterim + "HTTP/1.1 500 Later\r\n\r\n"});
  EXPECT_TRUE(response.done());
  EXPECT_EQ(response.status(), 204);
  EXPECT_EQ(response.body(), "");
}

TEST(HttpResponse, SaysWhatIsMissingAtAnyCut) {
  for (std::size_t cut = 0; cut < kChunked.size(); ++cut) {
    EXPECT_NE(response_error(kChunked.substr(0, cut)).find("closed the connection"), std::string::npos) << cut;
  }
  EXPECT_EQ(response_error(""), "closed the connection without an answer");
  EXPECT_EQ(response_error("HTTP/1.1 2"), "closed the connection within the status line");
  EXPECT_EQ(response_error("HTTP/1.1 200 OK\r\nA: b\r\n"), "closed the connection before the end of the header fields");
  EXPECT_EQ(response_error("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
            "closed the connection after 3 of the 9 bytes of its body");
  EXPECT_EQ(response_error("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1f\r\nabc"),
            "closed the connection after 3 of the 31 bytes of a chunk");
  EXPECT_EQ(response_error("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
            "closed the connection before the last chunk, which ends the body");
}

TEST(HttpResponse, RefusesWhatIsNoResponse) {
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::pair<std::string, std::string> cases[] = {
      {"SSH-2.0-OpenSSH\r\n", "no HTTP/1.1 status line"},
      {"HTTP/2 200\r\n", "no HTTP/1.1 status line"},
      {"HTTP/1.1 2x0 OK\r\n", "no HTTP/1.1 status line"},
      {"HTTP/1.1 200 OK\r\nno colon\r\n", "no header field"},
      {"HTTP/1.1 200 OK\r\n folded: x\r\n", "no header field"},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "expected chunked"},
      {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "no number"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", "the most that is read"},
      {chunked + "zz\r\n", "chunk length that is no number"},
      {chunked + "-1\r\n", "chunk length that is no number"},
      {chunked + "\r\n", "chunk length that is no number"},
      {chunked + "ffffffffffffffff\r\n", "the most that is read"},
      {chunked + "fffffffffffffffffffffff\r\n", "the most that is read"},
      {chunked + "3\r\nabcd\r\n", "more than the 3 bytes"},
      {chunked + std::string(HttpResponse::kLongestHeadLine + 1, '1'), "a line of more than 64 KiB"},
      {"HTTP/1.1 200 OK\r\nA: " + std::string(HttpResponse::kLongestHeadLine, 'b'), "a line of more than 64 KiB"}};
  for (const auto& [bytes, words] : cases) {
    EXPECT_NE(response_error(bytes).find(words), std::string::npos) << bytes.substr(0, 80) << "\n"
                                                                    << response_error(bytes);
  }
}

TEST(HttpResponse, ReadsNoHeadWithoutAnEnd) {
  HttpResponse response;
  response.feed("HTTP/1.1 200 OK\r\n");
  const auto feed_fields = [&] {
    for (int field = 0; field < 100'000; ++field) {
      response.feed("X-Field: and on it goes\r\n");
    }
  };
  EXPECT_THROW(feed_fields(), HttpError);
}

}  // namespace
}  // namespace decodelab

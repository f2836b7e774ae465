// A chat of three turns on one session: each turn is fed behind what the session holds.
#include <example.h>

int main(int count, char** arguments) {
  const decodelab::Engine engine = example_engine(count, arguments);
  decodelab::Session session(engine, {.batch_size = 1, .max_tokens = 64});
  for (const auto& turn : Rows{{5, 6}, {7}, {8, 9, 10}}) {
    session.extend(Rows{turn});
    std::vector<std::int64_t> answer = session.choose().token_ids;
    while (answer.size() < 4) {
      answer.push_back(session.decode().token_ids.front());
    }
    session.decode();  // Feeds the last token too, so that the next turn stands behind the whole answer.
    print(answer);
  }
}

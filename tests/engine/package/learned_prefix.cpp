// Keys and values from a file, as a learned prefix is shipped: decoding goes on behind them without a prompt for them.
#include <example.h>

int main(int count, char** arguments) {
  const decodelab::Engine engine = example_engine(count, arguments);
  decodelab::Session teacher(engine, {.batch_size = 1, .max_tokens = 32});
  teacher.extend(Rows{{5, 6, 7, 8}});
  teacher.filled().to_file("prefix.safetensors", engine);

  decodelab::Session session(engine, {.batch_size = 2, .max_tokens = 32});
  session.fill(decodelab::FilledCache::from_file("prefix.safetensors", engine, 2));
  session.extend(Rows{{9}, {10, 11}});
  print(session.choose().token_ids);
  print(session.decode().token_ids);
}

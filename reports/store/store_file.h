// Opens the SQLite file of a store, checks that it is one, and runs consistent reads and transactions on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "reports/store/store.h"

namespace decodelab {

/// One connection. Throws errors of SQLite as StoreError, which is a std::runtime_error, with the file's name.
///
/// A plain read-only connection to a WAL file leaves `-wal` and `-shm` files behind. As long as there is no `-wal` file
/// nobody writes, so reads go through an `immutable` connection, which touches nothing; a read during which a writer
/// appeared is repeated on a plain one.
class StoreFile {
 public:
  /// Throws as Store's constructor says.
  StoreFile(std::filesystem::path path, StoreAccess access);

  const std::filesystem::path& path() const { return path_; }

  /// Calls `body(database)` within one read transaction. `body` may run twice and must have no effect but its result.
  template <class Body>
  auto read(Body&& body) {
    if (immutable_ && changed()) {
      open_plain();
    }
    if (immutable_) {
      try {
        auto result = body(*database_);
        if (!changed()) {
          return result;
        }
      } catch (const SQLite::Exception& error) {
        if (!changed()) {
          throw failure(error);
        }
      }
      open_plain();
    }
    return guarded([&] {
      SQLite::Transaction snapshot(*database_);
      auto result = body(*database_);
      snapshot.commit();
      return result;
    });
  }

  /// Calls `body(database)` within one write transaction, which is rolled back when it throws.
  template <class Body>
  void write(Body&& body) {
    guarded([&] {
      SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
      body(*database_);
      transaction.commit();
      return 0;
    });
  }

  /// Rewrites the file without the space that removed rows left, and empties the log beside it.
  ///
  /// Needs as much free disk as the file is large, and waits for writers as write() does. Throws std::runtime_error;
  /// the content is the same either way.
  void vacuum();

 private:
  struct Stamp {
    std::filesystem::file_time_type written;
    std::uintmax_t bytes = 0;
    bool operator==(const Stamp&) const = default;
  };

  void open_for_reading();
  void open_for_writing();
  void refuse_foreign_files();
  void open_plain();
  void check_schema(int schema) const;
  void migrate();
  void migrate_a_copy();
  Stamp stamp() const;
  bool changed() const;
  std::string reason(const SQLite::Exception& error) const;
  StoreError failure(const SQLite::Exception& error) const;

  template <class Body>
  auto guarded(Body&& body) {
    try {
      return body();
    } catch (const SQLite::Exception& error) {
      throw failure(error);
    }
  }

  std::filesystem::path path_;
  std::optional<SQLite::Database> database_;
  bool immutable_ = false;
  Stamp opened_;
};

}  // namespace decodelab

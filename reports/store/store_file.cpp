// Opening, checking and migrating the SQLite file of a store.
#include "reports/store/store_file.h"

#include <chrono>
#include <system_error>
#include <thread>

#include <SQLiteCpp/Backup.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include "reports/store/migrations.h"

namespace decodelab {
namespace {

// A sweep on another machine may hold the lock while it adds a large run; a minute is far above the longest
// transaction.
constexpr int kBusyTimeoutMs = 60'000;
constexpr auto kWalRetryPause = std::chrono::milliseconds(20);

std::filesystem::path wal_of(const std::filesystem::path& path) { return path.string() + "-wal"; }

// SQLite reads `?` and `#` in a URI as the end of the path, and `%` as an escape.
std::string uri_of(const std::filesystem::path& path) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    if (c == '?' || c == '#' || c == '%') {
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

// Switching to WAL needs the file for a moment alone, and SQLite does not call the busy handler for it.
void enable_wal(SQLite::Database& database) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyTimeoutMs);
  while (true) {
    try {
      SQLite::Statement(database, "PRAGMA journal_mode = WAL").executeStep();
      return;
    } catch (const SQLite::Exception& error) {
      const bool busy = error.getErrorCode() == SQLITE_BUSY || error.getErrorCode() == SQLITE_LOCKED;
      if (!busy || std::chrono::steady_clock::now() > deadline) {
        throw;
      }
    }
    std::this_thread::sleep_for(kWalRetryPause);
  }
}

int integer(SQLite::Database& database, const char* query) { return database.execAndGet(query).getInt(); }

std::invalid_argument no_store(const std::filesystem::path& path, std::string_view why) {
  return std::invalid_argument(fmt::format(
      "'{}' is no decodelab store ({}); nothing was changed. Give another file to --store.", path.string(), why));
}

}  // namespace

StoreFile::StoreFile(std::filesystem::path path, StoreAccess access) : path_(std::move(path)) {
  std::error_code ignored;
  const bool there = std::filesystem::exists(path_, ignored);
  if (there && !std::filesystem::is_regular_file(path_, ignored)) {
    throw no_store(path_, "not a regular file");
  }
  if (!there && access == StoreAccess::read) {
    throw std::invalid_argument(fmt::format(
        "The store '{}' does not exist. Make one with `decodelab sweep --store {}`, or give the right file to --store.",
        path_.string(), path_.string()));
  }
  try {
    access == StoreAccess::read ? open_for_reading() : open_for_writing();
  } catch (const SQLite::Exception& error) {
    if (error.getErrorCode() == SQLITE_NOTADB) {
      throw no_store(path_, "not an SQLite file");
    }
    throw std::invalid_argument(
        fmt::format("The store '{}' cannot be opened for {}: {}. Give --store a file in a folder that exists and {}.",
                    path_.string(), access == StoreAccess::read ? "reading" : "writing", reason(error),
                    access == StoreAccess::read ? "can be read" : "may be written to"));
  }
}

void StoreFile::open_for_reading() {
  std::error_code ignored;
  if (std::filesystem::exists(wal_of(path_), ignored)) {
    open_plain();
  } else {
    opened_ = stamp();
    database_.emplace(uri_of(path_), SQLite::OPEN_READONLY | SQLite::OPEN_URI);
    immutable_ = true;
  }
  if (integer(*database_, "PRAGMA application_id") != kStoreApplicationId) {
    throw no_store(path_, "no run was ever added by decodelab");
  }
  const int schema = integer(*database_, "PRAGMA user_version");
  check_schema(schema);
  if (schema < Store::kSchemaVersion) {
    migrate_a_copy();
  }
}

// A reader must not change the file, so an older store is migrated in a copy in memory.
void StoreFile::migrate_a_copy() {
  SQLite::Database copy(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  SQLite::Backup(copy, *database_).executeStep();
  database_ = std::move(copy);
  immutable_ = false;
  migrate();
}

void StoreFile::open_for_writing() {
  database_.emplace(path_.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, kBusyTimeoutMs);
  if (sqlite3_db_readonly(database_->getHandle(), "main") == 1) {
    throw std::invalid_argument(fmt::format(
        "The store '{}' is read-only. Change its permissions or give another file to --store.", path_.string()));
  }
  database_->exec("PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL");
  refuse_foreign_files();
  enable_wal(*database_);
  migrate();
}

// In one read transaction: between two separate reads another process may create the tables.
void StoreFile::refuse_foreign_files() {
  SQLite::Transaction snapshot(*database_);
  const bool empty = integer(*database_, "SELECT count(*) FROM sqlite_master") == 0;
  const int application = integer(*database_, "PRAGMA application_id");
  // An empty database is one that was just created, by us or by a process that is about to migrate it.
  if (application != kStoreApplicationId && !(empty && application == 0)) {
    throw no_store(path_, "an SQLite file of another program");
  }
  check_schema(integer(*database_, "PRAGMA user_version"));
}

void StoreFile::open_plain() {
  immutable_ = false;
  database_.emplace(path_.string(), SQLite::OPEN_READONLY, kBusyTimeoutMs);
}

void StoreFile::check_schema(int schema) const {
  if (schema <= Store::kSchemaVersion) {
    return;
  }
  throw std::invalid_argument(
      fmt::format("The store '{}' has schema {}, but this program knows schemas up to {}: a newer decodelab wrote it. "
                  "Use that program, or give another file to --store.",
                  path_.string(), schema, Store::kSchemaVersion));
}

void StoreFile::migrate() {
  if (integer(*database_, "PRAGMA user_version") == Store::kSchemaVersion) {
    return;
  }
  SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
  const auto steps = migration_steps();
  // Read again under the lock: another process may have done it in between.
  for (int schema = integer(*database_, "PRAGMA user_version"); schema < Store::kSchemaVersion; ++schema) {
    database_->exec(steps[static_cast<std::size_t>(schema)]);
  }
  database_->exec(
      fmt::format("PRAGMA application_id = {}; PRAGMA user_version = {}", kStoreApplicationId, Store::kSchemaVersion));
  transaction.commit();
}

void StoreFile::vacuum() {
  guarded([&] {
    database_->exec("VACUUM");
    // In WAL mode the smaller file is still in the log.
    SQLite::Statement(*database_, "PRAGMA wal_checkpoint(TRUNCATE)").executeStep();
    return 0;
  });
}

StoreFile::Stamp StoreFile::stamp() const {
  std::error_code ignored;
  return {std::filesystem::last_write_time(path_, ignored), std::filesystem::file_size(path_, ignored)};
}

bool StoreFile::changed() const {
  std::error_code ignored;
  return std::filesystem::exists(wal_of(path_), ignored) || stamp() != opened_;
}

// SQLite says only "disk I/O error"; the system error says which one.
std::string StoreFile::reason(const SQLite::Exception& error) const {
  const int code = error.getErrorCode();
  const bool of_system = code == SQLITE_IOERR || code == SQLITE_CANTOPEN || code == SQLITE_FULL;
  const int number = database_ && of_system ? sqlite3_system_errno(database_->getHandle()) : 0;
  return number == 0 ? error.what() : fmt::format("{} ({})", error.what(), std::generic_category().message(number));
}

StoreError StoreFile::failure(const SQLite::Exception& error) const {
  return StoreError(
      fmt::format("The store '{}': {} (SQLite error {}).", path_.string(), reason(error), error.getErrorCode()));
}

}  // namespace decodelab

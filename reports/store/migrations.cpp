// The schema of the store, step by step.
#include "reports/store/migrations.h"

#include <array>

#include "reports/store/store.h"

namespace decodelab {
namespace {

// Builds, machines and models are shared by runs and never change: their whole row is their identity.
constexpr const char* kFirstSchema = R"sql(
CREATE TABLE builds (
  id INTEGER PRIMARY KEY,
  git_commit TEXT NOT NULL,
  compiler TEXT NOT NULL,
  build_type TEXT NOT NULL,
  libtorch TEXT NOT NULL,
  cuda TEXT NOT NULL,
  UNIQUE (git_commit, compiler, build_type, libtorch, cuda)
) STRICT;

CREATE TABLE machines (
  id INTEGER PRIMARY KEY,
  cpu TEXT NOT NULL,
  cores INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  isa TEXT NOT NULL,
  os TEXT NOT NULL,
  accelerator TEXT NOT NULL,
  UNIQUE (cpu, cores, memory_bytes, isa, os, accelerator)
) STRICT;

CREATE TABLE models (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  family TEXT NOT NULL,
  parameters INTEGER NOT NULL,
  positions INTEGER NOT NULL,
  random_weights INTEGER NOT NULL CHECK (random_weights IN (0, 1)),
  UNIQUE (name, family, parameters, positions, random_weights)
) STRICT;

CREATE TABLE runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  command TEXT NOT NULL,
  plan_json TEXT NOT NULL,
  seed INTEGER NOT NULL,
  launches INTEGER NOT NULL,
  blocks_per_launch INTEGER NOT NULL,
  started_unix_ns INTEGER NOT NULL,
  ended_unix_ns INTEGER NOT NULL,
  quick INTEGER NOT NULL CHECK (quick IN (0, 1)),
  build_id INTEGER NOT NULL REFERENCES builds (id),
  machine_id INTEGER NOT NULL REFERENCES machines (id),
  model_id INTEGER NOT NULL REFERENCES models (id)
) STRICT;
CREATE INDEX runs_by_name ON runs (name, started_unix_ns);

CREATE TABLE cells (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  phase TEXT NOT NULL,
  batch INTEGER NOT NULL,
  length INTEGER NOT NULL,
  dtype TEXT NOT NULL,
  device TEXT NOT NULL,
  threads INTEGER NOT NULL,
  scope TEXT NOT NULL,
  fill TEXT NOT NULL,
  steps INTEGER NOT NULL,
  UNIQUE (run_id, phase, batch, length, dtype, device, threads, scope, fill),
  UNIQUE (run_id, id)
) STRICT;

CREATE TABLE arms (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  label TEXT NOT NULL,
  baseline INTEGER NOT NULL CHECK (baseline IN (0, 1)),
  UNIQUE (run_id, label)
) STRICT;

CREATE TABLE cell_arms (
  cell_id INTEGER NOT NULL REFERENCES cells (id) ON DELETE CASCADE,
  arm_id INTEGER NOT NULL REFERENCES arms (id) ON DELETE CASCADE,
  status TEXT NOT NULL,
  reason TEXT NOT NULL,
  engaged INTEGER CHECK (engaged IN (0, 1)),
  peak_bytes INTEGER,
  ties INTEGER NOT NULL,
  flags TEXT NOT NULL,
  PRIMARY KEY (cell_id, arm_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE blocks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  launch INTEGER NOT NULL,
  block INTEGER NOT NULL,
  cell_id INTEGER NOT NULL,
  started_unix_ns INTEGER NOT NULL,
  other_cpu_share REAL NOT NULL,
  UNIQUE (run_id, launch, block, cell_id),
  FOREIGN KEY (run_id, cell_id) REFERENCES cells (run_id, id) ON DELETE CASCADE
) STRICT;

CREATE TABLE visits (
  block_id INTEGER NOT NULL REFERENCES blocks (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  arm_id INTEGER NOT NULL REFERENCES arms (id) ON DELETE CASCADE,
  previous_arm_id INTEGER REFERENCES arms (id) ON DELETE CASCADE,
  warmup_steps INTEGER NOT NULL,
  quiet INTEGER NOT NULL CHECK (quiet IN (0, 1)),
  wall_ns INTEGER NOT NULL,
  samples_ns BLOB NOT NULL CHECK (length(samples_ns) % 8 = 0),
  PRIMARY KEY (block_id, position)
) STRICT;
)sql";

// What the steps of an arm did, exactly.
constexpr const char* kCounters = R"sql(
CREATE TABLE counters (
  cell_id INTEGER NOT NULL,
  arm_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  value INTEGER NOT NULL,
  PRIMARY KEY (cell_id, arm_id, name),
  FOREIGN KEY (cell_id, arm_id) REFERENCES cell_arms (cell_id, arm_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
)sql";

// Arms that are other builds or other engines.
constexpr const char* kWorkers = R"sql(
ALTER TABLE arms ADD COLUMN command TEXT NOT NULL DEFAULT '';
ALTER TABLE arms ADD COLUMN engine TEXT NOT NULL DEFAULT '';
ALTER TABLE arms ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE arms ADD COLUMN settings TEXT NOT NULL DEFAULT '';
)sql";

// The accounts of traces. `place` keeps the shares of one trace in the order in which they were given.
constexpr const char* kTraces = R"sql(
CREATE TABLE traces (
  cell_id INTEGER NOT NULL,
  arm_id INTEGER NOT NULL,
  file TEXT NOT NULL,
  command TEXT NOT NULL,
  verdict TEXT NOT NULL,
  reason TEXT NOT NULL,
  tier INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  steps_ns INTEGER NOT NULL,
  residual_ns INTEGER NOT NULL,
  perturbation REAL NOT NULL,
  perturbation_low REAL NOT NULL,
  perturbation_high REAL NOT NULL,
  PRIMARY KEY (cell_id, arm_id),
  FOREIGN KEY (cell_id, arm_id) REFERENCES cell_arms (cell_id, arm_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE TABLE trace_shares (
  cell_id INTEGER NOT NULL,
  arm_id INTEGER NOT NULL,
  place INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  host_ns INTEGER NOT NULL,
  device_ns INTEGER NOT NULL,
  operators INTEGER NOT NULL,
  kernels INTEGER NOT NULL,
  allocations INTEGER NOT NULL,
  allocated_bytes INTEGER NOT NULL,
  PRIMARY KEY (cell_id, arm_id, place),
  UNIQUE (cell_id, arm_id, kind, name),
  FOREIGN KEY (cell_id, arm_id) REFERENCES traces (cell_id, arm_id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
)sql";

// The steps of a slice. In older stores every arm timed whole visits.
constexpr const char* kSlices = R"sql(
ALTER TABLE cells ADD COLUMN turn_steps INTEGER NOT NULL DEFAULT 0;
UPDATE cells SET turn_steps = steps;
)sql";

// How near outputs come to the reference's; all three or none.
constexpr const char* kAgreement = R"sql(
ALTER TABLE cell_arms ADD COLUMN logit_error REAL;
ALTER TABLE cell_arms ADD COLUMN kl_divergence REAL;
ALTER TABLE cell_arms ADD COLUMN top_1_agreement REAL;
)sql";

// Where the time of a launch went. Arm 0 stands for no arm: what launches do for all arms together.
constexpr const char* kTimesSpent = R"sql(
CREATE TABLE times_spent (
  run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  shard TEXT NOT NULL,
  launch INTEGER NOT NULL,
  arm_id INTEGER NOT NULL,
  activity TEXT NOT NULL,
  ns INTEGER NOT NULL,
  PRIMARY KEY (run_id, shard, launch, arm_id, activity)
) STRICT, WITHOUT ROWID;
)sql";

// The reference's choices in a cell, and the digests of those of the arms that were proved right by them.
constexpr const char* kProofs = R"sql(
CREATE TABLE cell_proofs (
  cell_id INTEGER PRIMARY KEY REFERENCES cells (id) ON DELETE CASCADE,
  batch INTEGER NOT NULL,
  length INTEGER NOT NULL,
  first TEXT NOT NULL,
  tokens TEXT NOT NULL
) STRICT;

CREATE TABLE arm_proofs (
  cell_id INTEGER NOT NULL REFERENCES cell_proofs (cell_id) ON DELETE CASCADE,
  arm_id INTEGER NOT NULL REFERENCES arms (id) ON DELETE CASCADE,
  chosen TEXT NOT NULL,
  PRIMARY KEY (cell_id, arm_id)
) STRICT, WITHOUT ROWID;
)sql";

// A proof for each request of a cell's arms; the requests of older stores are empty.
constexpr const char* kProofsByRequest = R"sql(
CREATE TABLE request_proofs (
  cell_id INTEGER NOT NULL REFERENCES cells (id) ON DELETE CASCADE,
  request TEXT NOT NULL,
  batch INTEGER NOT NULL,
  length INTEGER NOT NULL,
  first TEXT NOT NULL,
  tokens TEXT NOT NULL,
  PRIMARY KEY (cell_id, request)
) STRICT, WITHOUT ROWID;
INSERT INTO request_proofs SELECT cell_id, '', batch, length, first, tokens FROM cell_proofs;

CREATE TABLE request_arm_proofs (
  cell_id INTEGER NOT NULL,
  request TEXT NOT NULL,
  arm_id INTEGER NOT NULL REFERENCES arms (id) ON DELETE CASCADE,
  chosen TEXT NOT NULL,
  PRIMARY KEY (cell_id, arm_id),
  FOREIGN KEY (cell_id, request) REFERENCES request_proofs (cell_id, request) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO request_arm_proofs SELECT cell_id, '', arm_id, chosen FROM arm_proofs;

DROP TABLE arm_proofs;
DROP TABLE cell_proofs;
ALTER TABLE request_proofs RENAME TO cell_proofs;
ALTER TABLE request_arm_proofs RENAME TO arm_proofs;
)sql";

// What arms say to the prompts of a run.
constexpr const char* kCompletions = R"sql(
CREATE TABLE completions (
  arm_id INTEGER NOT NULL REFERENCES arms (id) ON DELETE CASCADE,
  prompt INTEGER NOT NULL,
  prompt_text TEXT NOT NULL,
  class TEXT NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  token_ids TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (arm_id, prompt)
) STRICT, WITHOUT ROWID;
)sql";

// How well arms predict a text.
constexpr const char* kQualities = R"sql(
CREATE TABLE qualities (
  arm_id INTEGER PRIMARY KEY REFERENCES arms (id) ON DELETE CASCADE,
  tokens INTEGER NOT NULL,
  log_perplexity REAL NOT NULL,
  log_perplexity_error REAL NOT NULL,
  log_ratio REAL NOT NULL,
  log_ratio_error REAL NOT NULL,
  kl_divergence REAL NOT NULL,
  kl_divergence_error REAL NOT NULL,
  kl_divergence_999 REAL NOT NULL,
  top_1_agreement REAL NOT NULL,
  top_1_agreement_error REAL NOT NULL,
  rms_probability REAL NOT NULL,
  reason TEXT NOT NULL
) STRICT;
)sql";

constexpr std::array kSteps{kFirstSchema, kCounters, kWorkers,     kTraces,          kSlices,   kAgreement,
                            kTimesSpent,  kProofs,   kCompletions, kProofsByRequest, kQualities};
static_assert(kSteps.size() == Store::kSchemaVersion, "a new step raises Store::kSchemaVersion by one");

}  // namespace

std::span<const char* const> migration_steps() { return kSteps; }

}  // namespace decodelab

# What the scripts in tools/ share: the folders, the choice that tools/bootstrap stored, messages, durations, the number of jobs.
# shellcheck shell=bash disable=SC2034  # sourced: the variables are used by the scripts
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$ROOT/.venv
# Written by tools/bootstrap --libtorch, --cuda and --cpu-only; absent: everything comes from the pinned wheels.
CHOICE_FILE=$VENV/decodelab.env

say() { printf '%s\n' "$*"; }
warn() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { warn "$*"; exit 1; }

# The comment block at the head of the calling script is its --help.
show_help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

# cache_folder: where decodelab keeps models, as default_cache_directory() has it.
cache_folder() { say "${DECODELAB_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/decodelab}"; }

# smollm2_file: the model that the name smollm2 stands for.
smollm2_file() { say "$(cache_folder)/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"; }

# load_choice: sets CHOSEN_LIBTORCH, CHOSEN_CUDA (folders, or empty) and CHOSEN_CPU_ONLY (1 or empty).
load_choice() {
  CHOSEN_LIBTORCH='' CHOSEN_CUDA='' CHOSEN_CPU_ONLY=''
  # shellcheck source=/dev/null
  if [[ -f $CHOICE_FILE ]]; then source "$CHOICE_FILE"; fi
}

# MB of memory that this process may use: the machine's, or the control group's where that is less.
memory_mb() {
  local machine limit
  machine=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  if [[ $limit =~ ^[0-9]+$ ]] && (( limit / 1048576 < machine )); then machine=$(( limit / 1048576 )); fi
  echo "$machine"
}

# jobs_for MB: parallel jobs where each may take that much memory; at least one, at most one a core.
jobs_for() {
  local cores jobs
  cores=$(nproc)
  jobs=$(( $(memory_mb) / $1 ))
  if (( jobs > cores )); then jobs=$cores; fi
  if (( jobs < 1 )); then jobs=1; fi
  echo "$jobs"
}

# duration SECONDS: as people read it, "48 s" or "3 min 5 s".
duration() { if (( $1 < 60 )); then echo "$1 s"; else echo "$(( $1 / 60 )) min $(( $1 % 60 )) s"; fi; }

# The wheels' cmake, ctest, ninja and clang tools before the system's.
use_venv() { export PATH=$VENV/bin:$PATH; }

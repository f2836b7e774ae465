// `--draft`, and the models behind it.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "bench/plan/named_draft.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/safetensors.h"
#include "engine/engine.h"

namespace decodelab {

void add_draft_option(CLI::App& command, std::vector<std::string>& drafts);

/// Returns the configuration of each draft, without reading a weight. Throws std::invalid_argument naming the draft for
/// a model that is not there, and one that does not speak the tokens of `model`: a token that is called by both has the
/// same bytes, as far as both have a tokenizer.
std::map<std::string, ModelConfig> configs_of_drafts(std::span<const NamedDraft> drafts, const std::string& model);

/// Finds or makes the weights of each draft, and says where they are. Throws NotEnoughMemory, before anything is
/// loaded, where the weights of `model` and of all drafts together would not fit.
void open_drafts(std::vector<NamedDraft>& drafts, const std::string& model, ElementType dtype,
                 const std::string& device);

/// Returns the drafts, which were opened. Each is loaded, or started in a process of its own, when an engine asks for
/// it; that process has as many threads as this one, at `places` as place_threads() takes them.
Drafts load_drafts(std::span<const NamedDraft> drafts, ElementType dtype, const std::string& device,
                   const std::vector<std::int64_t>& places = {});

/// Returns `arm` with the guesses that --speculate and --draft ask for: of the draft, or without one of
/// suffix-automaton. `guesses` is 0 where --speculate was not given. Throws std::invalid_argument where the arm guesses
/// already, by something else.
std::string speculating_arm(const std::string& arm, std::int64_t guesses, std::span<const NamedDraft> drafts);

}  // namespace decodelab

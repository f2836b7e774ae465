#!/usr/bin/env python3
"""A worker that decodes with Hugging Face Transformers, by the model's own forward: no overhead of generate(), or with it.

examples:
  decodelab sweep ... --worker tf='tools/peers/run transformers --attention sdpa --cache static'
  decodelab sweep ... --phase generate --samples 10 --sample --worker hf='tools/peers/run transformers --loop generate'
"""

import argparse
import copy
import gc
import os
import sys
from importlib.metadata import version

from worker_engine import StepEngine
from worker_protocol import NEUTRAL, serve

ELEMENT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
# A compiled decode step with a cache that grows is compiled again for the second length, this time for any.
COMPILED_STEPS = 4
# Programs that a worker may compile: more than the shapes of any sweep.
MOST_SHAPES = 4096
# Longest text of a model that has no limit of positions, as in our engine.
UNBOUND_POSITIONS = 16384


class TransformersEngine(StepEngine):
    name = "transformers"
    dtypes = tuple(ELEMENT_BYTES)

    def __init__(self, attention, cache, compiled, loop, lookup=0, assistant=None):
        self.version = version("transformers")
        self.attention, self.cache_kind, self.compiled, self.loop = attention, cache, compiled, loop
        self.settings = {"attention": attention, "cache": cache, "compile": compiled, "loop": loop, "torch": version("torch"),
                         **({"prompt_lookup": lookup} if lookup else {}), **({"assistant": assistant} if assistant else {})}
        self.lookup, self.assistant_name, self.assistant = lookup, assistant, None
        if loop == "generate":
            self.phases, self.sampling = ("generate", "continue"), tuple(NEUTRAL)
        self.devices = ("cpu", "cuda") if os.path.exists("/dev/nvidiactl") else ("cpu",)
        self.prefixes = cache == "dynamic" and not compiled and loop == "forward"
        self.model = self.forward = self.past = self.held = self.last_logits = self.encoded = None
        self.encodes = False

    def load(self, model, dtype, device, threads, seed):
        # Threads before torch is imported, for libraries that read them once.
        os.environ.update(OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

        if device != "cpu" and not torch.cuda.is_available():
            raise NotImplementedError(f"device {device}: PyTorch finds no CUDA device here")
        self.torch = torch
        torch.set_num_threads(threads)
        torch.manual_seed(seed)
        self.model = self.forward = self.past = self.last_logits = self.encoded = None
        gc.collect()  # a model's modules refer to each other: the last one goes before the next one comes
        self.dtype, self.device = dtype, torch.device(device)
        model = self.directory_of(model)
        kind = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[dtype]
        self.encodes = AutoConfig.from_pretrained(model, local_files_only=True).is_encoder_decoder
        if self.encodes and (self.compiled or self.cache_kind == "static"):
            raise NotImplementedError("a model with an encoder runs with a dynamic cache and without --compile")
        kinds = AutoModelForSeq2SeqLM if self.encodes else AutoModelForCausalLM
        self.model = kinds.from_pretrained(model, dtype=kind, attn_implementation=self.attention, local_files_only=True).to(self.device).eval()
        if self.assistant_name:
            self.assistant = AutoModelForCausalLM.from_pretrained(self.directory_of(self.assistant_name), dtype=kind, attn_implementation=self.attention, local_files_only=True).to(self.device).eval()
        self.forward = self.compile() if self.compiled else self.model.forward
        config = self.model.config
        self.positions, self.vocabulary = getattr(config, "max_position_embeddings", UNBOUND_POSITIONS), config.vocab_size
        self.weight_bytes = self.device_bytes()
        build = {"cpu": torch.backends.cpu.get_cpu_capability, "cuda": lambda: torch.cuda.get_device_name(self.device)}[self.device.type]()
        return {"threads": torch.get_num_threads(), "weights": dtype, "activations": dtype, "kv": dtype,
                **({"accumulate": "fp32"} if device == "cpu" else {}), "attention": config._attn_implementation, "build": build,
                "matmul_precision": torch.get_float32_matmul_precision(), "greedy": "argmax on the device, ids to the host each step"}

    @staticmethod
    def directory_of(model):
        """A GGUF file is written as a directory once, its weights dequantized to fp32."""
        from checkpoint import Checkpoint, converted
        from gguf_source import is_gguf, write_directory

        if not is_gguf(model):
            return model
        return converted(Checkpoint(model), "transformers", version("gguf"), lambda draft: write_directory(model, draft))

    def compile(self):
        """The compiled forward: one program a shape, where the shapes of a cell do not change (a static cache)."""
        limits = self.torch._dynamo.config
        # Beyond the limit PyTorch goes on without a compiler and says nothing; a sweep has two shapes a cell.
        limits.recompile_limit = limits.accumulated_recompile_limit = MOST_SHAPES
        limits.fail_on_recompile_limit_hit = True
        return self.torch.compile(self.model.forward, dynamic=False if self.cache_kind == "static" else None)

    def device_bytes(self):
        """Bytes of tensors held on a GPU, None on a CPU, whose allocator is not asked."""
        return self.torch.cuda.memory_allocated(self.device) if self.device.type == "cuda" else None

    def prepare(self, cell):
        torch = self.torch
        self.cell = cell
        self.ids = torch.tensor(cell.prompts, device=self.device)
        self.longest = cell.length + cell.room
        self.held = None
        if cell.prefix:
            if self.encodes:
                raise NotImplementedError("an encoder reads each prompt as a whole")
            self.past = self.new_cache()
            self.call(self.ids[:, : cell.prefix])
            self.held = self.past
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        if self.compiled:
            tokens = self.prefill()
            for _ in range(min(COMPILED_STEPS, self.longest - cell.length)):
                tokens = self.decode(tokens)
        config = self.model.config
        kv_heads = 1 if getattr(config, "multi_query", False) else getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        layers, held = (config.num_decoder_layers, self.longest + cell.room) if self.encodes else (config.num_hidden_layers, self.longest)
        keys = 2 * layers * kv_heads * head_dim * held
        return cell.batch * (keys + self.vocabulary) * ELEMENT_BYTES[self.dtype]

    def new_cache(self):
        from transformers import DynamicCache, EncoderDecoderCache, StaticCache

        if self.encodes:
            return EncoderDecoderCache(DynamicCache(), DynamicCache())
        if self.cache_kind == "static":
            return StaticCache(config=self.model.config, max_cache_len=self.longest)
        return DynamicCache(config=self.model.config)

    def save(self):
        past = copy.deepcopy(self.past)
        caches = (past.self_attention_cache, past.cross_attention_cache) if self.encodes else (past,)
        return (past, self.encoded), sum(tensor.nbytes for cache in caches for layer in cache.layers for tensor in (layer.keys, layer.values))

    def restore(self, state):
        past, self.encoded = state
        self.past = copy.deepcopy(past)

    def step(self):
        if self.loop == "generate":
            self.tokens = self.generate()
        else:
            super().step()

    def generate(self):
        """One call of generate() for all samples of the cell's prompts; it stops at no token, so that every row gets as many as ours. A continuation goes on with the cache that the fill left."""
        cell, config = self.cell, self.model.generation_config
        guesses = {"prompt_lookup_num_tokens": self.lookup} if self.lookup else {"assistant_model": self.assistant} if self.assistant else {}
        if guesses and cell.batch != 1:
            raise NotImplementedError("generate() guesses for one row; ask for --batch 1")
        config.eos_token_id = None
        config.pad_token_id = 0
        sampling = dict(NEUTRAL, **(cell.sampling or {}))
        drawn = {"do_sample": True, **{name: sampling[name] for name in ("temperature", "top_k", "top_p", "typical_p")}} if sampling["sample"] else {"do_sample": False}
        prompts = self.ids[:: cell.samples]
        if cell.phase == "continue":
            prompts = self.torch.cat([self.ids, self.torch.tensor(self.tokens, device=self.device).unsqueeze(1)], dim=1)
            guesses["past_key_values"] = self.past
        with self.torch.inference_mode():
            rows = self.model.generate(input_ids=prompts, attention_mask=self.torch.ones_like(prompts), num_return_sequences=cell.samples, max_new_tokens=cell.max_tokens,
                                       repetition_penalty=float(sampling["repetition_penalty"]), use_cache=self.cache_kind != "none", **guesses, **drawn)
        return rows[:, -1].tolist()

    def prefill(self):
        """Prompts whose beginnings are held go on with a copy of their cache, as Transformers' guide to prefixes has it."""
        if self.held is not None:
            self.past = copy.deepcopy(self.held)
            return self.call(self.ids[:, self.cell.prefix :])
        self.past = self.new_cache()
        if not self.encodes:
            return self.call(self.ids)
        with self.torch.inference_mode():
            self.encoded = self.model.get_encoder()(input_ids=self.ids)
        return self.call(self.torch.full_like(self.ids[:, :1], self.model.config.decoder_start_token_id))

    def decode(self, tokens):
        return self.call(self.torch.tensor(tokens, device=self.device).unsqueeze(1))

    def call(self, ids):
        with self.torch.inference_mode():
            inputs = dict(decoder_input_ids=ids, encoder_outputs=self.encoded) if self.encodes else dict(input_ids=ids, logits_to_keep=1)
            self.last_logits = self.forward(**inputs, past_key_values=self.past, use_cache=True).logits[:, -1]
            return self.last_logits.argmax(-1).tolist()

    def logits(self):
        return self.last_logits.float().cpu().contiguous().numpy()

    def peak_bytes(self):
        return self.torch.cuda.max_memory_allocated(self.device) - self.weight_bytes if self.device.type == "cuda" else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attention", choices=["sdpa", "eager"], default="sdpa")
    parser.add_argument("--cache", choices=["dynamic", "static", "none"], default="dynamic", help="none (use_cache=False) with --loop generate only")
    parser.add_argument("--loop", choices=["forward", "generate"], default="forward", help="who runs the steps: this worker, or the library's generate(), in phase generate, which also draws samples")
    parser.add_argument("--compile", action="store_true", help="torch.compile of the model's forward; goes best with --cache static")
    parser.add_argument("--prompt-lookup", type=int, default=0, metavar="N", help="with --loop generate: prompt_lookup_num_tokens, guesses of what followed before (default 0: none)")
    parser.add_argument("--assistant", metavar="MODEL", help="with --loop generate: assistant_model, a directory or GGUF file of a smaller model that guesses")
    arguments = parser.parse_args()
    if (arguments.prompt_lookup or arguments.assistant) and arguments.loop != "generate":
        parser.error("--prompt-lookup and --assistant are of generate(): add --loop generate")
    if arguments.prompt_lookup and arguments.assistant:
        parser.error("--prompt-lookup and --assistant: generate() takes guesses of one of them")
    if arguments.loop == "generate" and (arguments.cache == "static" or arguments.compile):
        parser.error("--loop generate goes with --cache dynamic or none, and without --compile")
    if arguments.cache == "none" and arguments.loop != "generate":
        parser.error("--cache none goes with --loop generate: the steps of this worker feed one token")
    # No network, no threads of the tokenizer, no pool of compiler processes beside the timed one.
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TORCHINDUCTOR_COMPILE_THREADS="1")
    return serve(TransformersEngine(arguments.attention, arguments.cache, arguments.compile, arguments.loop, arguments.prompt_lookup, arguments.assistant))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""A worker that decodes with llama.cpp, by its C interface: all rows of a batch in one llama_decode().

The context belongs to the cell and is made once, as every user of llama.cpp does; a prefill step clears its cache and runs the prompts.

example:
  decodelab sweep ... --worker lc='tools/peers/run llama_cpp --flash-attention off'
  decodelab sweep ... --phase continue --prompts FILE --worker look-up='tools/peers/run llama_cpp --prompt-lookup 10'
"""

import argparse
import ctypes
import json
import os
import sys
from importlib.metadata import version

from worker_engine import StepEngine
from worker_protocol import serve

ELEMENT_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2}
GGML_TYPES = {"fp32": 0, "fp16": 1, "bf16": 30}  # enum ggml_type
# llama.cpp rounds the cells of a sequence up to this many, and its fused attention reads them in such blocks.
CONTEXT_MULTIPLE = 256
ERROR_LEVEL = 4  # enum ggml_log_level
# What logits may be off by where activations are rounded to 8 bits for products by a file's blocks; that of our stored-linear.
STORED_BOUND = 0.2


def stored_file(model):
    """Returns a GGUF file, and the types of the matrices in it."""
    from gguf_source import is_gguf

    if not is_gguf(model):
        raise NotImplementedError(f"--weights file computes with a file's own blocks, and {model} is no GGUF file")
    import gguf

    path = os.path.realpath(model)
    types = {tensor.tensor_type.name for tensor in gguf.GGUFReader(path).tensors if len(tensor.shape) == 2}
    return path, "+".join(sorted(types))


class LlamaCppEngine(StepEngine):
    name = "llama.cpp"
    dtypes = tuple(ELEMENT_BYTES)
    prefixes = True
    llama = model = context = None

    def __init__(self, flash_attention, mmap, kv_unified, kv_dtype, ubatch, lookup=0, as_stored=False):
        self.version = version("llama_cpp_python")
        self.flash_attention, self.mmap, self.kv_unified, self.kv_dtype, self.ubatch = flash_attention, mmap, kv_unified, kv_dtype, ubatch
        self.settings = {"package": "llama-cpp-python", "mmap": mmap, "kv_unified": kv_unified, "ubatch": ubatch, **({"prompt_lookup": lookup} if lookup else {})}
        self.lookup, self.as_stored = lookup, as_stored
        if lookup:
            self.phases = ("generate", "continue")
        self.last_error = ""

    def load(self, model, dtype, device, threads, seed):
        os.environ.update(OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS="1")
        from checkpoint import Checkpoint
        from gguf_file import converted_file

        self.start_library()
        llama, checkpoint = self.llama, Checkpoint(model)
        weights = dtype
        if self.as_stored:
            file, weights = stored_file(model)
            self.logit_bound = STORED_BOUND
        else:
            file = converted_file(checkpoint, dtype)
        self.free()
        parameters = llama.llama_model_default_params()
        parameters.n_gpu_layers = 0
        parameters.load_mode = llama.LLAMA_LOAD_MODE_MMAP if self.mmap else llama.LLAMA_LOAD_MODE_NONE
        self.model = llama.llama_model_load_from_file(file.encode(), parameters)
        if not self.model:
            raise RuntimeError(f"llama.cpp could not load {file}: {self.last_error}")
        self.config, self.dtype, self.threads = checkpoint.config, dtype, threads
        self.positions, self.vocabulary = self.config.positions, self.config.vocabulary
        self.kv = self.kv_dtype or dtype
        self.fused = self.flash_attention == "on" or (self.flash_attention == "auto" and self.kv != "fp32")
        ggml = llama._lib
        ggml.ggml_version.restype = ggml.ggml_commit.restype = ctypes.c_char_p
        # The folder is named by the checkpoint's files, the rest by what computes with them.
        self.identity = [self.version, file, ggml.ggml_version().decode(), ggml.ggml_commit().decode(), llama.llama_print_system_info().decode()]
        kv = "fp32, cast to fp16 by its fused attention" if self.fused and self.kv == "fp32" else self.kv
        return {"threads": threads, "weights": weights, "activations": "8 bits in products" if self.as_stored else "fp32", "accumulate": "fp32", "kv": kv, "flash_attention": self.fused,
                "gelu": "tanh by a table of fp16", "greedy": "numpy argmax of each row's logits", "ggml": f"{ggml.ggml_version().decode()} {ggml.ggml_commit().decode()}",
                "build": llama.llama_print_system_info().decode().strip(" |")}

    def start_library(self):
        """Loads llama.cpp once, and keeps its last error line for messages: its functions return only NULL or a number."""
        if self.llama:
            return
        import numpy
        from llama_cpp import llama_cpp

        def log(level, text, _):
            line = text.decode(errors="replace")
            if level == ERROR_LEVEL and line.strip():
                self.last_error = line.strip()
            sys.stderr.write(line)

        self.llama, self.numpy = llama_cpp, numpy
        self.log = llama_cpp.llama_log_callback(log)  # kept: C calls it for as long as the process lives
        llama_cpp.llama_log_set(self.log, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()

    def free(self):
        if self.context:
            self.llama.llama_free(self.context)
        if self.model:
            self.llama.llama_model_free(self.model)
        self.context = self.model = None

    def prepare(self, cell):
        from checkpoint import kv_bytes

        llama, numpy = self.llama, self.numpy
        if self.context:
            llama.llama_free(self.context)
            self.context = None
        self.cell = cell
        cells = -(-(cell.length + cell.room) // CONTEXT_MULTIPLE) * CONTEXT_MULTIPLE
        # Prompts are prefilled in the first sample of each, and beside the rows stand the prefixes, one a prompt.
        firsts, prefix = list(range(0, cell.batch, cell.samples)), cell.prefix or 0
        sequences = cell.batch + (len(firsts) if prefix else 0)
        parameters = llama.llama_context_default_params()
        parameters.n_ctx = cells * sequences
        parameters.n_seq_max = sequences
        parameters.n_batch = max(cell.batch * cell.length, self.ubatch)
        parameters.n_ubatch = self.ubatch
        parameters.n_threads = parameters.n_threads_batch = self.threads
        parameters.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_ENABLED if self.fused else llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
        parameters.type_k = parameters.type_v = GGML_TYPES[self.kv]
        parameters.kv_unified = self.kv_unified or prefix > 0 or cell.samples > 1  # sequences share cells of one cache only
        parameters.no_perf = True
        self.context = llama.llama_init_from_model(self.model, parameters)
        if not self.context:
            kind = MemoryError if "alloc" in self.last_error else RuntimeError
            raise kind(f"llama.cpp could not make a context of {parameters.n_ctx} cells: {self.last_error}")
        self.memory = llama.llama_get_memory(self.context)
        rows, length = numpy.arange(cell.batch), cell.length
        prompts = numpy.array(cell.prompts, dtype=numpy.int32)[firsts]
        self.firsts, self.prompts = firsts, prompts[:, prefix:].ravel()
        self.prompt_batch = prompt_batch(llama, numpy, firsts, prefix, length)
        if prefix:
            held = [cell.batch + index for index in range(len(firsts))]
            self.call(prompt_batch(llama, numpy, held, 0, prefix), prompts[:, :prefix].ravel())
        self.token_batch = Batch(llama, numpy, rows, numpy.full(cell.batch, length), rows)
        return kv_bytes(self.config, self.config.kv_heads, cell.batch, cells, ELEMENT_BYTES[self.kv]) + 4 * cell.batch * self.vocabulary

    def save(self):
        states = []
        for row in range(self.cell.batch):
            size = self.llama.llama_state_seq_get_size(self.context, row)
            state = (ctypes.c_uint8 * size)()
            if self.llama.llama_state_seq_get_data(self.context, state, size, row) != size:
                return None
            states.append(bytes(state))
        return states, sum(map(len, states))

    def state_key(self):
        return json.dumps([self.identity, self.threads, self.kv, self.fused, self.kv_unified, self.ubatch])

    def restore(self, states):
        self.llama.llama_memory_clear(self.memory, False)
        for row, state in enumerate(states):
            buffer = (ctypes.c_uint8 * len(state)).from_buffer_copy(state)
            if self.llama.llama_state_seq_set_data(self.context, buffer, len(state), row) == 0:
                raise RuntimeError(f"llama.cpp could not restore the keys of row {row}: {self.last_error}")
        self.token_batch.positions[:] = self.cell.length

    def prefill(self):
        """Prompts begin with their prefixes, and samples with their prompts: llama_memory_seq_cp() lets sequences share cells."""
        llama, cell = self.llama, self.cell
        if cell.prefix:
            for row in range(cell.batch):
                llama.llama_memory_seq_rm(self.memory, row, -1, -1)
            for index, row in enumerate(self.firsts):
                llama.llama_memory_seq_cp(self.memory, cell.batch + index, row, 0, cell.prefix)
        else:
            llama.llama_memory_clear(self.memory, False)
        self.token_batch.positions[:] = cell.length
        tokens = self.call(self.prompt_batch, self.prompts)
        for row in self.firsts:
            for sample in range(row + 1, row + cell.samples):
                llama.llama_memory_seq_cp(self.memory, row, sample, 0, cell.length)
        self.rows = [row for row in self.rows for _ in range(cell.samples)]
        return [token for token in tokens for _ in range(cell.samples)]

    def decode(self, tokens):
        answer = self.call(self.token_batch, tokens)
        self.token_batch.positions += 1
        return answer

    def go_on(self, count):
        if not self.lookup:
            super().go_on(count)
            return
        if self.cell.batch != 1:
            raise NotImplementedError("llama-cpp-python guesses for one row; ask for --batch 1")
        from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

        numpy, draft = self.numpy, LlamaPromptLookupDecoding(num_pred_tokens=self.lookup)
        position, token, left = int(self.token_batch.positions[0]), self.tokens[0], count
        text = numpy.concatenate([self.cell.prompts[0], numpy.zeros(count, numpy.int64)]).astype(numpy.intc)
        while left:
            text[position] = token
            guesses = draft(text[: position + 1])[: left - 1].tolist()
            tokens = [token, *guesses]
            batch = Batch(self.llama, numpy, numpy.zeros(len(tokens), numpy.int64), numpy.arange(position, position + len(tokens)), numpy.arange(len(tokens)))
            chosen = self.call(batch, tokens)
            right = 0
            while right < len(guesses) and guesses[right] == chosen[right]:
                right += 1
            text[position + 1 : position + 1 + right] = guesses[:right]
            position, token, left = position + 1 + right, chosen[right], left - 1 - right
            self.llama.llama_memory_seq_rm(self.memory, 0, position, -1)
        self.token_batch.positions[:] = position
        self.tokens = [token]

    def call(self, batch, tokens):
        batch.tokens[:] = tokens
        code = self.llama.llama_decode(self.context, batch.struct)
        if code != 0:
            kind = MemoryError if "alloc" in self.last_error else RuntimeError
            raise kind(f"llama_decode returned {code} for {len(batch.tokens)} tokens: {self.last_error}")
        self.rows = [self.row(index) for index in batch.outputs]
        return [int(row.argmax()) for row in self.rows]

    def row(self, index):
        """The logits of the token at `index` of the last batch, a view that the next call overwrites."""
        pointer = self.llama.llama_get_logits_ith(self.context, index)
        return self.numpy.frombuffer((ctypes.c_float * self.vocabulary).from_address(ctypes.addressof(pointer.contents)), dtype=self.numpy.float32)

    def logits(self):
        return self.numpy.stack(self.rows)


def prompt_batch(llama, numpy, sequences, begin, end):
    """The tokens from `begin` to before `end` of each sequence, with the logits of the last."""
    count = end - begin
    return Batch(llama, numpy, numpy.repeat(numpy.array(sequences), count), numpy.tile(numpy.arange(begin, end), len(sequences)), numpy.arange(1, len(sequences) + 1) * count - 1)


class Batch:
    """A llama_batch whose tokens and positions are numpy arrays over its own memory."""

    def __init__(self, llama, numpy, sequences, positions, outputs):
        count = len(sequences)
        self.tokens, self.positions = numpy.zeros(count, numpy.int32), positions.astype(numpy.int32)
        self.outputs = [int(index) for index in outputs]
        wanted = numpy.zeros(count, numpy.int8)
        wanted[outputs] = 1
        ones, ids = numpy.ones(count, numpy.int32), sequences.astype(numpy.int32)
        pointers = ids.ctypes.data + numpy.arange(count, dtype=numpy.uintp) * ids.itemsize
        self.kept = (wanted, ones, ids, pointers)  # C reads them through the struct
        kinds = dict(llama.llama_batch._fields_)
        pointer = lambda array, name: ctypes.cast(array.ctypes.data, kinds[name])  # noqa: E731
        self.struct = llama.llama_batch(n_tokens=count, token=pointer(self.tokens, "token"), embd=None, pos=pointer(self.positions, "pos"),
                                        n_seq_id=pointer(ones, "n_seq_id"), seq_id=pointer(pointers, "seq_id"), logits=pointer(wanted, "logits"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    switch = {"choices": ["on", "off"]}
    parser.add_argument("--flash-attention", choices=["auto", "on", "off"], default="auto",
                        help="fused attention (default auto: on where keys have 16 bits, for it casts others to fp16)")
    parser.add_argument("--mmap", default="on", help="map the weights instead of reading them (default on)", **switch)
    parser.add_argument("--kv-unified", default="off", help="one cache for all rows instead of one each (default off)", **switch)
    parser.add_argument("--kv", choices=list(ELEMENT_BYTES), help="dtype of keys and values; the cell's where nothing is said")
    parser.add_argument("--weights", choices=["dtype", "file"], default="dtype", help="convert the weights to the cell's dtype, or compute with the blocks of a GGUF file (default dtype)")
    parser.add_argument("--ubatch", type=int, default=512, help="most tokens in one pass through the model (default 512, as llama.cpp's)")
    parser.add_argument("--prompt-lookup", type=int, default=0, metavar="N", help="guess N tokens by llama-cpp-python's LlamaPromptLookupDecoding, and check them in one pass (default 0: do not)")
    arguments = parser.parse_args()
    return serve(LlamaCppEngine(arguments.flash_attention, arguments.mmap == "on", arguments.kv_unified == "on", arguments.kv, arguments.ubatch, arguments.prompt_lookup, arguments.weights == "file"))


if __name__ == "__main__":
    sys.exit(main())

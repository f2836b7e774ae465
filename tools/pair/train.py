"""Trains the pair: text, tokenizer, then the model and its draft, each resumable."""

import argparse
import json
import math
import os
import pathlib
import sys
import time

from text import held_out, tokens_of, trained_tokenizer

SHAPES = {"model": {"n_layer": 8, "n_embd": 384, "n_head": 6}, "draft": {"n_layer": 2, "n_embd": 128, "n_head": 2}}
VOCABULARY, POSITIONS, LENGTH = 2048, 1024, 256
KEEP_EVERY = 25
PEAK_RATE = {"model": 1.5e-3, "draft": 4e-3}
HELD_OUT_ROWS, PROMPTS = 32, 8


def parsed():
    parser = argparse.ArgumentParser(prog="tools/train_pair", description=__doc__)
    parser.add_argument("--out", required=True, type=pathlib.Path, help="the folder of the pair")
    parser.add_argument("--steps", type=int, default=600, help="of each of the two (default 600)")
    parser.add_argument("--batch", type=int, default=16, help=f"rows of {LENGTH} tokens of a step (default 16)")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    return parser.parse_args()


def new_model(name):
    from transformers import GPTBigCodeConfig, GPTBigCodeForCausalLM

    config = GPTBigCodeConfig(**SHAPES[name], n_inner=4 * SHAPES[name]["n_embd"], n_positions=POSITIONS, vocab_size=VOCABULARY, multi_query=True, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                              bos_token_id=0, eos_token_id=0, activation_function="gelu_pytorch_tanh")
    return GPTBigCodeForCausalLM(config)


def rate_at(step, steps, peak):
    """A rise over the first twentieth, and a cosine down to a tenth."""
    rise = max(1, steps // 20)
    return peak * (step + 1) / rise if step < rise else peak * (0.55 + 0.45 * math.cos(math.pi * (step - rise) / max(1, steps - rise)))


def write_whole(path, write):
    """A file that is there is whole."""
    draft = path.with_suffix(".part")
    write(draft)
    draft.replace(path)


def train(name, train_tokens, arguments):
    """The trained model; its state is kept as it goes."""
    import torch

    torch.manual_seed(0)
    model = new_model(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE[name], betas=(0.9, 0.95), weight_decay=0.1)
    state, first = arguments.out / f"{name}.state", 0
    if state.exists():
        kept = torch.load(state, weights_only=True)
        if kept["steps"] != arguments.steps or kept["batch"] != arguments.batch:
            raise SystemExit(f"tools/train_pair: {state} is of {kept['steps']} steps of {kept['batch']} rows, not of {arguments.steps} of {arguments.batch}: "
                             "ask for those, or remove it to begin anew")
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["step"]
    data, start = torch.from_numpy(train_tokens.astype("int64")), time.monotonic()
    for step in range(first, arguments.steps):
        rows = torch.Generator().manual_seed(step)
        begins = torch.randint(len(data) - LENGTH, (arguments.batch,), generator=rows).tolist()
        ids = torch.stack([data[begin : begin + LENGTH] for begin in begins])
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, arguments.steps, PEAK_RATE[name])
        with torch.autocast("cpu", torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if (step + 1) % KEEP_EVERY == 0 or step + 1 == arguments.steps:
            kept = {"step": step + 1, "steps": arguments.steps, "batch": arguments.batch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
            write_whole(state, lambda draft, kept=kept: torch.save(kept, draft))
            left = (time.monotonic() - start) / (step + 1 - first) * (arguments.steps - step - 1)
            print(f"{name}: step {step + 1} of {arguments.steps}, loss {loss.item():.3f}, {left:.0f} s to go", file=sys.stderr, flush=True)
    return model.eval()


def save(name, model, tokenizer, out):
    model.save_pretrained(out / name)
    tokenizer.save(str(out / name / "tokenizer.json"))
    (out / name / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}) + "\n")


def logits_on(model, rows):
    import torch

    with torch.inference_mode():
        return model(input_ids=rows).logits[:, :-1]


def main():
    arguments = parsed()
    if arguments.steps < 1 or arguments.batch < 1:
        raise SystemExit("tools/train_pair: --steps and --batch must be at least 1")
    os.environ.update(OMP_NUM_THREADS=str(arguments.threads), TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1")
    import torch

    torch.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    tokenizer = trained_tokenizer(arguments.out, VOCABULARY)
    tokens = tokens_of(arguments.out, tokenizer)
    models = {name: train(name, tokens["train"], arguments) for name in SHAPES}
    for name, model in models.items():
        save(name, model, tokenizer, arguments.out)
    prompts = held_out(tokens["held_out"], PROMPTS, LENGTH).tolist()
    write_whole(arguments.out / "prompts.jsonl", lambda draft: draft.write_text("".join(json.dumps({"prompt_ids": ids}) + "\n" for ids in prompts)))
    rows = torch.from_numpy(held_out(tokens["held_out"], HELD_OUT_ROWS, LENGTH))
    said = {name: logits_on(model, rows) for name, model in models.items()}
    for name, model in models.items():
        loss = torch.nn.functional.cross_entropy(said[name].flatten(0, 1), rows[:, 1:].flatten())
        print(f"{name}: {sum(parameter.numel() for parameter in model.parameters()) / 1e6:.1f} M parameters, loss {loss.item():.3f} on {rows[:, 1:].numel()} held-out tokens")
    same = (said["model"].argmax(-1) == said["draft"].argmax(-1)).double().mean().item()
    print(f"the draft's likeliest token is the model's at {100 * same:.0f} % of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())

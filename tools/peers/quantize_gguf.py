"""Rounds the weights of a GGUF file by llama.cpp's quantizer; tools/peers/quantize says how it is called."""

import os
import sys

# The types of whole files, by llama.cpp's names (enum llama_ftype).
TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q4_K_S", "Q4_K_M", "Q6_K")


def main():
    source, name, target = sys.argv[1:]
    if name not in TYPES:
        sys.exit(f"quantize: expected a type of {', '.join(TYPES)}, got {name}")
    if not os.path.isfile(source):
        sys.exit(f"quantize: there is no file {source}")
    from llama_cpp import llama_cpp

    parameters = llama_cpp.llama_model_quantize_default_params()
    prefix = "LLAMA_FTYPE_ALL_" if name == "F32" else "LLAMA_FTYPE_MOSTLY_"
    parameters.ftype = getattr(llama_cpp, prefix + name)
    parameters.allow_requantize = True
    os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
    draft = f"{target}.{os.getpid()}.part"
    try:
        if llama_cpp.llama_model_quantize(source.encode(), draft.encode(), parameters) != 0:
            sys.exit(f"quantize: llama.cpp could not write {target}; its reason stands above")
        os.replace(draft, target)
    finally:
        if os.path.exists(draft):
            os.remove(draft)


if __name__ == "__main__":
    main()

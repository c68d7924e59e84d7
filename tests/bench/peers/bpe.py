"""Seconds that the usual tokenizers need for a text, without start-up and without reading it.

bpe.py encode TEXT THREADS        tiktoken, GPT-2's ranks: one thread on the whole text, more on pieces of it
bpe.py train TEXT THREADS VOCAB   tokenizers, a byte-level BPE from the file
"""
import os
import pathlib
import sys
import time

mode, path, threads = sys.argv[1:4]
os.environ["RAYON_NUM_THREADS"] = threads
os.environ["TOKENIZERS_PARALLELISM"] = "true"


def gpt2():
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe
    from tiktoken_ext.openai_public import r50k_pat_str

    import ranks

    return tiktoken.Encoding(
        "gpt2",
        pat_str=r50k_pat_str,
        mergeable_ranks=load_tiktoken_bpe(str(ranks.gpt2())),
        special_tokens={"<|endoftext|>": 50256},
    )


def pieces_of(text, size=10_000):
    """Pieces of about 10 kB that end with a line, as documents would be given to it."""
    pieces, start = [], 0
    while start < len(text):
        end = text.find("\n", start + size) + 1 or len(text)
        pieces.append(text[start:end])
        start = end
    return pieces


if mode == "encode":
    encoding = gpt2()
    text = pathlib.Path(path).read_text(encoding="utf-8")
    pieces = pieces_of(text)
    start = time.perf_counter()
    if threads == "1":
        encoding.encode_to_numpy(text)
    else:
        encoding.encode_ordinary_batch(pieces, num_threads=int(threads))
else:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=int(sys.argv[4]),
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    start = time.perf_counter()
    tokenizer.train([path], trainer)
print(time.perf_counter() - start)

"""Compares noether with other programs, in turns: run.py BUILD TEXT [CASE...]

Each case runs ours and theirs alternately, after a round that is not counted. A row gives the median and the best of both, and
the ratio ours / theirs of the rounds: its median, least and greatest. Seconds: a ratio below 1 is a win; rates: above 1.
BENCH_THREADS (all cores) holds for both sides, BENCH_ROUNDS overrides the number of rounds. Nothing here fails on a slow figure.
"""
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
PEERS = HERE / "peers"
THREADS = os.environ.get("BENCH_THREADS", str(len(os.sched_getaffinity(0))))
# layers, heads, width, context, vocabulary, batch, steps measured, rounds
SHAPES = {
    "a": (12, 12, 768, 512, 50304, 8, 3, 2),
    "b": (4, 4, 128, 128, 1024, 16, 60, 5),
    "c": (6, 6, 384, 256, 4096, 8, 12, 4),
}
WARM_STEPS = 3

# Set on some machines for old OpenBLAS builds; they slow a new one.
environment = {k: v for k, v in os.environ.items() if k not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
environment.update({name: THREADS for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")})


def run(*command, errors=None):
    """Output, seconds and peak memory in MiB of a program that must succeed."""
    start = time.perf_counter()
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=errors, env=environment,
                             text=True)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"run.py: {' '.join(map(str, command))}: exit status {child.returncode}")
    return output, time.perf_counter() - start, usage.ru_maxrss / 1024


def compare(name, unit, rounds, ours, theirs):
    """ours() and theirs() give (figure, peak MiB or None)."""
    pairs = [(ours(), theirs()) for _ in range(1 + rounds)][1:]
    best = min if unit == "s" else max
    cells = [name, unit]
    for side in (0, 1):
        figures = [pair[side][0] for pair in pairs]
        cells += [f"{statistics.median(figures):.4g}", f"{best(figures):.4g}"]
    ratios = [mine[0] / other[0] for mine, other in pairs]
    cells.append(f"{statistics.median(ratios):.3f} [{min(ratios):.3f}, {max(ratios):.3f}]")
    for side in (0, 1):
        memory = [pair[side][1] for pair in pairs]
        cells.append("-" if None in memory else f"{max(memory):.0f}")
    # A figure that only we have stands alone.
    print("\t".join("-" if "nan" in cell else cell for cell in [*cells, str(rounds)]), flush=True)


def repeats(default):
    return int(os.environ.get("BENCH_ROUNDS", default))


def timed(*command):
    _, seconds, memory = run(*command)
    return seconds, memory


class Cases:
    """One method a case; what several need is made once."""

    def __init__(self, build, text):
        self.build, self.text = build, text
        self.folder = build / "bench"
        self.noether = build / "bin" / "noether"
        sys.path.insert(0, str(PEERS))

    def made(self, name, *command):
        path = self.folder / name
        if not path.exists():
            run(*command, "-o", path)
        return path

    def start_tokenize(self):
        compare("start-up: tokenize --help, import tokenizers", "s", repeats(20),
                lambda: timed(self.noether, "tokenize", "--help"),
                lambda: timed(sys.executable, "-c", "import tokenizers"))

    def start_train(self):
        compare("start-up: train --help, import torch", "s", repeats(5),
                lambda: timed(self.noether, "train", "--help"),
                lambda: timed(sys.executable, "-c", "import torch"))

    def stream(self):
        """Both programs print GB/s in the same words, a line each; the pipe between processes is ours alone."""
        commands = [[self.build / "noether_stream_bench"], [sys.executable, HERE / "stream_h5py.py"]]
        figures = [{}, {}]
        for _ in range(1 + repeats(3)):
            for side, command in enumerate(commands):
                output = run(*command, 500, self.folder, errors=subprocess.STDOUT)[0]
                for what, rate in re.findall(r"^(.*?) +median +([0-9.]+) GB/s", output, re.MULTILINE):
                    figures[side].setdefault(what.removesuffix(" and renamed"), []).append(float(rate))
        for what, mine in figures[0].items():
            ours, theirs = iter(mine), iter(figures[1].get(what, [float("nan")] * len(mine)))
            compare(f"stream of 500 MB: {what}; h5py", "GB/s", len(mine) - 1, lambda: (next(ours), None),
                    lambda: (next(theirs), None))

    def encode(self):
        import ranks
        for threads in sorted({"1", THREADS}):
            def theirs():
                output, _, memory = run(sys.executable, PEERS / "bpe.py", "encode", self.text, threads)
                return float(output), memory
            compare(f"tokenize encode (whole program), tiktoken (encoding alone), {threads} threads", "s", repeats(5),
                    lambda: timed(self.noether, "tokenize", "encode", "-q", "-t", ranks.gpt2(), "-j", threads, self.text,
                                  "-o", self.folder / "encoded.h5"),
                    theirs)

    def bpe_train(self):
        for vocabulary in (4096, 16384):
            def theirs():
                output, _, memory = run(sys.executable, PEERS / "bpe.py", "train", self.text, THREADS, vocabulary)
                return float(output), memory
            compare(f"tokenize train (whole program), tokenizers (training alone), vocabulary {vocabulary}", "s", repeats(3),
                    lambda: timed(self.noether, "tokenize", "train", "-q", "--vocab-size", vocabulary, "-j", THREADS,
                                  self.text, "-o", self.folder / "bpe.h5"),
                    theirs)

    def basins(self):
        def theirs():
            output, _, memory = run(sys.executable, PEERS / "basins.py", 1000, 1000, 0.8, THREADS)
            return float(output.split()[0]), memory
        compare("bifurcate basins (whole program, every fate), numba (escape alone): 1000 x 1000 points, 1000 steps", "s", repeats(5),
                lambda: timed(self.noether, "bifurcate", "basins", "--mu", "0.8", "--size", "1000", "--steps", "1000", "-j", THREADS),
                theirs)

    def optimizer(self, name, peer, steps, rounds):
        """One step alone. SOAP's first is left out on both sides, as it makes the bases; ten steps then hold one renewal."""
        state = {}

        def side(label, command):
            output, _, memory = run(*command)
            *seconds, state[label] = map(float, output.split())
            kept = seconds[-10:] if name == "soap" else seconds[WARM_STEPS:]
            return (statistics.mean(kept) if name == "soap" else statistics.median(kept)), memory

        compare(f"optimizer step, 124M: {name}, {peer}", "s", rounds,
                lambda: side("ours", (self.build / "noether_optimizer_bench", name, steps, THREADS)),
                lambda: side("theirs", (sys.executable, PEERS / "optimizers.py", peer, steps, THREADS)))
        print(f"  state: {state['ours']:.2f} bytes a parameter, {peer} {state['theirs']:.2f}", flush=True)

    def start(self, shape):
        """A fresh model of the shape, and the text in tokens of its vocabulary."""
        layers, heads, width, context, vocabulary, *_ = SHAPES[shape]
        if vocabulary > 50257:
            import ranks
            bpe, label = ranks.gpt2(), "gpt2"
        else:
            label = str(vocabulary)
            bpe = self.made(f"bpe-{label}.h5", self.noether, "tokenize", "train", "-q", "--vocab-size", vocabulary, self.text)
        tokens = self.made(f"tokens-{label}.h5", self.noether, "tokenize", "encode", "-q", "-t", bpe, self.text)
        start = self.folder / "start.h5"
        run(self.noether, "init", "gpt2", "--layers", layers, "--heads", heads, "--width", width, "--context", context,
            "--vocab-size", vocabulary, "-t", bpe, "-o", start)
        return start, tokens

    def align(self):
        model = self.made("align.h5", self.noether, "init", "gpt2-124m", "--break", "qv", "--vocab-size", 50257)

        def theirs():
            output, _, memory = run(sys.executable, PEERS / "align.py", THREADS)
            return float(output), memory
        compare("align tokens (whole program), PyTorch (cosines alone): 144 heads, 50257 tokens", "s", repeats(3),
                lambda: timed(self.noether, "align", "tokens", model, "-j", THREADS, "-o", "/dev/null"), theirs)

    def loss(self, shape):
        layers, heads, width, context, vocabulary, batch, steps, rounds = SHAPES[shape]
        start, tokens = self.start(shape)

        def ours():
            output, _, memory = run(self.noether, "eval", "loss", start, tokens, "-q", "--limit", batch * context * steps, "-j", THREADS)
            names, values = (line.split("\t") for line in output.splitlines())
            return float(values[names.index("tokens_per_second")]), memory

        def theirs():
            output, _, memory = run(sys.executable, PEERS / "loss.py", layers, heads, width, context, vocabulary, batch, steps, THREADS)
            return statistics.median(map(float, output.split())), memory

        compare(f"loss {shape}: {layers} layers, width {width}, vocabulary {vocabulary}, windows of {context}, float32; eager PyTorch",
                "tokens/s", repeats(rounds), ours, theirs)

    def train(self, shape):
        layers, heads, width, context, vocabulary, batch, steps, rounds = SHAPES[shape]
        start, tokens = self.start(shape)
        log = self.folder / "log.tsv"

        def ours():
            _, _, memory = run(self.noether, "train", "-q", start, tokens, "--optimizer", "adamw", "--lr", "1e-4",
                               "--batch", batch, "--steps", WARM_STEPS + steps, "--log", log, "-j", THREADS,
                               "-o", "/dev/null")
            rows = [line.split("\t") for line in log.read_text().splitlines()]
            column = rows[0].index("tokens_per_second")
            return statistics.median(float(row[column]) for row in rows[1 + WARM_STEPS:]), memory

        def theirs():
            output, _, memory = run(sys.executable, PEERS / "train.py", layers, heads, width, context, vocabulary, batch,
                                    WARM_STEPS + steps, THREADS)
            seconds = [float(line) for line in output.split()[WARM_STEPS:]]
            return batch * context / statistics.median(seconds), memory

        compare(f"training step {shape}: {layers} layers, width {width}, vocabulary {vocabulary}, {batch} x {context}, "
                "float32, AdamW; eager PyTorch", "tokens/s", repeats(rounds), ours, theirs)


def main():
    build, text = map(pathlib.Path, sys.argv[1:3])
    cases = Cases(build.resolve(), text.resolve())
    table = {"start-tokenize": cases.start_tokenize, "start-train": cases.start_train, "stream": cases.stream,
             "basins": cases.basins, "encode": cases.encode, "bpe-train": cases.bpe_train,
             "adamw": lambda: cases.optimizer("adamw", "adamw", 23, repeats(3)), "sgdm": lambda: cases.optimizer("sgdm", "sgd", 23, repeats(3)),
             "ecd": lambda: cases.optimizer("ecd", "sgd", 23, repeats(3)), "soap": lambda: cases.optimizer("soap", "soap", 11, 1),
             "align": cases.align, "loss-b": lambda: cases.loss("b"), "loss-c": lambda: cases.loss("c"),
             "train-b": lambda: cases.train("b"), "train-c": lambda: cases.train("c"), "train-a": lambda: cases.train("a")}
    chosen = sys.argv[3:] or list(table)
    for name in chosen:
        if name not in table:
            sys.exit(f"run.py: no case {name}; there are: {' '.join(table)}")

    print(run(cases.noether, "--version")[0].strip())
    packages = run(sys.executable, "-m", "pip", "freeze", "--disable-pip-version-check")[0].splitlines()
    print("peers: " + ", ".join(p.replace("==", " ") for p in packages if p.startswith(("torch=", "numpy=", "tik", "tokenizers", "h5py", "numba", "pytorch-opt"))))
    model = next(line.split(": ")[1] for line in open("/proc/cpuinfo") if line.startswith("model name"))
    print(f"{model.strip()}, {THREADS} threads; the text has {text.stat().st_size} bytes\n")
    print("case\tunit\tours median\tours best\ttheirs median\ttheirs best\tours / theirs [least, greatest]\tours MiB\ttheirs MiB\trounds")
    for name in chosen:
        table[name]()


main()

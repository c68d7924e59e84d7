"""The file of GPT-2's ranks that openai-whisper carries; found without importing it, for it needs much that is not installed."""
import importlib.util
import pathlib


def gpt2():
    return pathlib.Path(importlib.util.find_spec("whisper").origin).parent / "assets" / "gpt2.tiktoken"

"""pre_tokenizer.jsonl: how other programs' regular expressions cut tricky strings into words.

    make_pre_tokenizer.py > pre_tokenizer.jsonl      (needs the packages regex and tokenizers; both must agree on every line)

Only characters that Unicode 14 knows are used, so that later versions cannot change a class.
"""
import base64
import json
import random
import unicodedata

import regex
from tokenizers import Regex, pre_tokenizers

PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
              r"|\s*[\r\n]+|\s+(?!\S)|\s+",
}
FIXED = ["", " ", "\n", "  ", " \n ", "\n\n\na", "a\n\n\n", "it's we'll I'VE you'Re 'S 'T 'lL '\u017f '\u017fa ''s '", "x   y", "x \t y",
         "\r\n\r\n  x", "1234567 12 3", "\u0661\u0662\u0663\u0664", "a\u0301e\u0301 \u0301", "\u4f60\u597d\uff0c\u4e16\u754c\u3002\n\u518d\u89c1",
         "\U0001F469\u200d\U0001F469\u200d\U0001F467 x", "\u00a0x \u00a0\u00a0x", "\u2028\u2029\u0085\u3000y", "\x1c\x1dz \x1c", "\ufeffBOM", "\u200b\u200bz",
         "!!'s", " 's", "!!\n\n\nx", " !\r\n x", "_a __b", "\u00b2\u00bd\u2167", "\t\ta", "don't 'dont' DON'T", "a'b'll'c", "\u017fs", "x\n \n y"]
POOL = (list("abzAZ019 .,!'\"-_\n\r\t\x00\x7f\x0b\x0c\x1c") + [" ", " ", "\n", "  ", "'s", "'ll", "'RE", "'\u017f"] +
        list("\u0085\u00a0\u00b2\u00df\u00e9\u0130\u017f\u01c5\u02b0\u0301\u0416\u0661\u0905\u093f\u0e01\u1680\u180e\u2003\u2028\u200b\u200d\u2167\u2460\u3000\u4e00\u3007"
             "\ua4d0\uac00\ufe0f\uff11\ufffd\U00010330\U0001D7D8\U0001F600\U000E0100"))
assert all(unicodedata.category(c) != "Cn" for text in POOL + FIXED for c in text)


def main():
    draw = random.Random(7)
    texts = FIXED + ["".join(draw.choices(POOL, k=draw.randint(2, 24))) for _ in range(600)]
    splits = {name: pre_tokenizers.Split(Regex(pattern), "isolated") for name, pattern in PATTERNS.items()}
    for text in texts:
        line = {"text_b64": base64.b64encode(text.encode()).decode()}
        for name, pattern in PATTERNS.items():
            words = [match.group() for match in regex.finditer(pattern, text)]
            assert "".join(words) == text
            if text:
                assert words == [word for word, _ in splits[name].pre_tokenize_str(text)], (name, text, words)
            line[name] = [len(word.encode()) for word in words]
        print(json.dumps(line, separators=(",", ":")))


main()

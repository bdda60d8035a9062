"""How numbers, money, abbreviations and Latin letters are read, by the packages that NVIDIA's
Tacotron 2 uses.

    pip install inflect==7.0.0 Unidecode==1.3.8
    python english_cleaners.py --metadata metadata.csv

Writes tests/fixtures/english_cleaners.json: `patterns`, every distinct word of LJSpeech 1.1's
printed text that has a digit, as it is read (the metadata is in the public domain); `numbers` and
`ordinals` around every corner of the rules; `texts`; and `ascii`, Unidecode's result for the
characters of Latin-1, Latin Extended-A and General Punctuation. The steps are those of Keith Ito's
cleaners in their order, but that `£` is kept through the step to ASCII: there it becomes `PS`, and
the rule for pounds is never asked.
"""

import argparse
import json
import re
from pathlib import Path

import inflect
from unidecode import unidecode

OUT = Path(__file__).resolve().parent.parent / "fixtures" / "english_cleaners.json"
ENGINE = inflect.engine()
SHORT = "mrs misess mr mister dr doctor st saint co company jr junior maj major gen general drs doctors rev reverend lt lieutenant".split()
SHORT += "hon honorable sgt sergeant capt captain esq esquire ltd limited col colonel ft fort".split()


def money(found):
    """Dollars and cents; a third part is left as it is."""
    parts = found[1].split(".")
    if len(parts) > 2:
        return found[1] + " dollars"
    counts = [int(part) if part else 0 for part in parts] + [0]
    said = [f"{count} {unit}" + ("" if count == 1 else "s") for count, unit in zip(counts, ("dollar", "cent")) if count]
    return ", ".join(said) or "zero dollars"


def number(found):
    value = int(found[0])
    if not 1000 < value < 3000:
        return ENGINE.number_to_words(value, andword="")
    if value == 2000:
        return "two thousand"
    if 2000 < value < 2010:
        return "two thousand " + ENGINE.number_to_words(value % 100)
    if value % 100 == 0:
        return ENGINE.number_to_words(value // 100) + " hundred"
    return ENGINE.number_to_words(value, andword="", zero="oh", group=2).replace(", ", " ")


def read(text):
    text = "£".join(unidecode(part) for part in text.split("£")).lower()
    text = re.sub(r"[0-9][0-9,]+[0-9]", lambda found: found[0].replace(",", ""), text)
    text = re.sub(r"£([0-9,]*[0-9]+)", r"\1 pounds", text)
    text = re.sub(r"\$([0-9.,]*[0-9]+)", money, text)
    text = re.sub(r"[0-9]+\.[0-9]+", lambda found: found[0].replace(".", " point "), text)
    text = re.sub(r"[0-9]+(st|nd|rd|th)", lambda found: ENGINE.number_to_words(found[0]), text)
    text = re.sub(r"[0-9]+", number, text)
    for short, word in zip(SHORT[::2], SHORT[1::2]):
        text = re.sub(rf"\b{short}\.", word, text)
    return re.sub(r"\s+", " ", text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--metadata", required=True)
    rows = [line.rstrip("\n").split("|") for line in open(parser.parse_args().metadata, encoding="utf-8")]
    patterns = sorted({word for row in rows for word in row[1].split() if re.search("[0-9]", word)})
    corners = {n + d for e in range(1, 13) for n in (10**e, 2 * 10**e, 10**e + 10 ** (e // 2), 123456789012 // 10**e) for d in (-1, 0, 1, 5, 21, 100)}
    corners |= set(range(0, 131)) | set(range(995, 1115)) | set(range(1890, 2031)) | set(range(2990, 3012)) | {10**35 + 7, 10**36 - 1}
    numbers = sorted(n for n in corners if n >= 0)
    short = [f"{word[0].upper()}{word[1:]}. {word} x{word}. {word}." for word in SHORT[::2]]
    texts = short + ["$1.5 $1.05 $.50 $0 $0.00 $1,234.56 $1.2.3 $5,", "£5 £1,234 £0", "3.14 0.5 1.2.3 007 1,2 12,34", "$10.1st 5th,6th"]
    blocks = [*range(0xA0, 0x180), *range(0x2000, 0x2070)]
    out = {
        "patterns": {word: read(word) for word in patterns},
        "numbers": {str(n): read(str(n)) for n in numbers},
        "ordinals": {f"{n}th": read(f"{n}th") for n in numbers},
        "texts": {text: read(text) for text in texts},
        "ascii": {chr(code): unidecode(chr(code)) for code in blocks},
    }
    OUT.write_text(json.dumps(out, ensure_ascii=False, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    print({name: len(part) for name, part in out.items()}, OUT.stat().st_size, "bytes")
    print("lines of the normalised text:", len(rows))


if __name__ == "__main__":
    main()

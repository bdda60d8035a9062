"""SentencePiece's own models and what it does with them (pip install sentencepiece==0.2.3).

Writes tests/fixtures/sentencepiece.json.gz: a text, the pieces that SentencePiece learns from it
with the settings of OpenSeq2Seq (bpe, character coverage 1, pad 0, end 1, begin 2, unknown 3), and
ids and decoded text of lines that try its normalisation; and three small models of others' kinds
(no compiled rules inside: the rules of the first are tested by its ids), each with pieces, ids and
decoded text of the same lines.
"""

import base64
import gzip
import json
import random
import re
import tempfile
from pathlib import Path

import sentencepiece as spm

HERE = Path(__file__).resolve().parent
WORDS = (
    "the of and to in a that is was for it with as his on be at by had not are but from or have an they which one you were "
    "house houses housing old older oldest tree trees forest mountain mountains river rivers walking walked walks talker "
    "talking international nation national nations understanding understood misunderstand water waters underwater light "
    "der die und das in zu den nicht von sie ist des sich mit dem dass er es ein ich auf so eine auch als an nach wie im "
    "Haus Häuser Gehäuse Baum Bäume Straße Straßen Größe größer größte Übung Übungen übersetzen Übersetzung Übersetzungen "
    "Verständnis verstehen verstanden Missverständnis Wasser Unterwasser Licht Lichter Bundesregierung Regierung regieren"
).split()
ODD_WORDS = ["3.141", "2014", "1,000,000", "état", "naïve", "Москва", "москвич", "東京", "とうきょう", "トウキョウ", "ﬁnal", "½", "x²",
             "Å", "A\u030a", "e\u0301te", "word\u00a0word", "zero\u200bwidth", "soft\u00adhyphen", "ｆｕｌｌ", "…", "“quoted”", "don’t", "well-known",
             "abcdefghijklmnopqrstuvwxyz", "a1b2c3", "€5", "☃", "👍🏽", "\u0301x"]
TRY = [
    "", " ", "   the   house  ", "the house", "The HOUSE is older.", "Die Häuser sind größer als der Baum.", "unseenwordsareheretoo zzz",
    "tab\tand\u000bmore", "nbsp\u00a0here\u2003and\u3000there", "ﬁ ﬂ ½ ² ™ Å A\u030a", "…dots… “q” ‘s’ don’t", "zero\u200bwidth soft\u00adhyphen \ufeffbom",
    "東京 とうきょう トウキョウ ｆｕｌｌ", "Москва и москвич", "☃ snow ☃☃ 👍🏽", "▁ already ▁here", "a\u0000b", "line\u2028sep\u0085nel", "mixedЖscript1one2two", "1,000,000.50 €5",
    "\u0301 combining first", "x" * 200, "<s> </s> <unk> <pad>", "trailing space ", "한국어 가나다 \u1100\u1161", "العربية ١٢٣", "\u200d\u200c\u200e", "Übersetzungen" * 12,
]


def corpus():
    rng = random.Random(20140611)
    weights = [1 / (1 + rank) for rank in range(len(WORDS))]
    lines = []
    for _ in range(500):
        words = rng.choices(WORDS, weights, k=rng.randint(2, 14))
        for odd in rng.sample(ODD_WORDS, rng.choice([0, 0, 1, 2])):
            words.insert(rng.randint(0, len(words)), odd)
        line = " ".join(words)
        line = re.sub(r" ", lambda _: ", " if rng.random() < 0.05 else " ", line) + rng.choice([".", ".", "!", "?", ""])
        lines.append(line)
    return lines


def described(model_bytes, lines):
    processor = spm.SentencePieceProcessor(model_proto=model_bytes)
    ids = [processor.encode(line) for line in lines]
    return {
        "pieces": [processor.id_to_piece(i) for i in range(processor.get_piece_size())],
        "ids": ids,
        "surfaces": [processor.encode(line, out_type=str) for line in lines],
        "decoded": [processor.decode(one) for one in ids],
    }


def trained(lines, **options):
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text"
        text.write_text("\n".join(lines) + "\n", encoding="utf-8")
        prefix = Path(folder) / "m"
        spm.SentencePieceTrainer.train(input=str(text), model_prefix=str(prefix), minloglevel=2, **options)
        return Path(f"{prefix}.model").read_bytes()


def main():
    lines = corpus()
    ids = {"pad_id": 0, "eos_id": 1, "bos_id": 2, "unk_id": 3}
    learnt = {}
    for size in [250, 400]:
        model = trained(lines, model_type="bpe", vocab_size=size, character_coverage=1.0, **ids)
        learnt[str(size)] = described(model, TRY + lines[:40])
    others = {
        "unigram": {"model_type": "unigram", "vocab_size": 220},
        "bpe-bytes": {"model_type": "bpe", "vocab_size": 460, "byte_fallback": True, "character_coverage": 0.98},
        "bpe-pad": {"model_type": "bpe", "vocab_size": 200, "character_coverage": 0.98, **ids},
    }
    fixture = {"text": lines, "lines": TRY + lines[:40], "learnt": learnt, "others": {}}
    for name, options in others.items():
        model = trained(lines, normalization_rule_name="identity", **options)
        fixture["others"][name] = {"model": base64.b64encode(model).decode(), **described(model, fixture["lines"])}
    text = json.dumps(fixture, ensure_ascii=False, sort_keys=True)
    file = HERE.parent / "fixtures" / "sentencepiece.json.gz"
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(file.name, file.stat().st_size, "bytes")


if __name__ == "__main__":
    main()

"""Words of reviews and sentences -> tests/fixtures/review_words.json.

`treebank`: texts and their words by NLTK's `word_tokenize(text, preserve_line=True)` (`pip install
nltk==3.4.5`). `known`: words that a model has. `reviews`, `sentences`: texts and their words as
OpenSeq2Seq's classifiers read them for that model, each text as one sentence.
"""

import collections
import collections.abc
import inspect
import re

# NLTK 3.4.5 asks for these at import; Python 3.11 has dropped them.
inspect.formatargspec = getattr(inspect, "formatargspec", lambda *parts, **more: "")
collections.Sequence, collections.Mapping, collections.Iterable = collections.abc.Sequence, collections.abc.Mapping, collections.abc.Iterable

from nltk.tokenize import word_tokenize

import fixture

TREEBANK = [
    "Good muffins cost $3.88 in New York.  Please buy me two of them. Thanks.", "They'll save and invest more.", "hi, my name can't hello,",
    '"We\'re here", she said, "aren\'t we?"', "He said ''yes'' and ``no``.", "it's John's, I'm told; he'd've gone", "DON'T SHOUT! I'LL GO",
    "(a [b] {c} <d>)", "one--two -- three", "wait... what...? well....", "e.g. the U.S. is here", "an 80's film, the '80s, '99", "rock 'n' roll 'n roll",
    "'tis the season, 'Twas so, more'n that", "I cannot, gimme, gonna, gotta, lemme, wanna go; wanna", "d'ye know? Mor'n that",
    "50% & #1 @home a:b 3:4 1,000 a,b", "«Oui» “yes” ‘no’ „so“", "the dogs' bones and 's 't 'a b", "a 'b c' d'", "'quoted words'", 'end of it."', "end of it.)",
    "end .", "...", "", "   ", "x'y'z'", "rock'n'roll", "what?!", "no.no", "5'9\" tall", "a\tb\u00a0c", "naïve café's", "it`s", "can not Cannot CANNOT",
]  # fmt: skip
KNOWN = "The the film is a good bad movie I it 's n't do ' \" , . ( ) ! ? - / * + and of to U.S. etc. etc Ms. actors 'em Don".split()
REVIEWS = [
    "The film is good.<br /><br />I dont like it!", "A movie\u0096not bad\u0097and good.", "Ms. Smith and ms. Jones etc. and etc of it", "etc., etc.",
    "Thats it; cantor wouldnt couldnt didnt isnt wasnt", "'The movie' is 'good' and ''bad''", "It`s a 'bad' movie/film *** 10/10 +1", "'em and 'Em and 'x",
    "Don't GO! DON'T", '"Quoted" and ``so\'\' and \' \' it', "well-known U.S.A. films...", "Ünïcode Straße", "", "a 'I b", "the '80s", "' x",
]  # fmt: skip
SENTENCES = [
    "The film is good.", "A movie - not bad - and good .", "Ms. Smith etc. and the U.S. film.", "It's a bad movie/film *** 10/10 +1", "'em and 'Em and 'x", "Don't GO!",
    '"Quoted" and ``so\'\' it', "well-known U.S.A. films...", "isnt it? I cant", "No. No movement. The film.", "actors' film", "...", "", "<br /> stays",
]  # fmt: skip
CONTRACTIONS = {
    "thats": "that's", "wouldnt": "wounldn't", "couldnt": "couldn't", "cant": "can't", "dont": "don't", "didnt": "didn't", "isnt": "isn't",
    "wasnt": "wasn't",
}  # fmt: skip


def tokens(text):
    return word_tokenize(text, preserve_line=True)


def words(text, review):
    if review:
        for mark in ("<br />", "\u0096", "\u0097"):
            text = text.replace(mark, " ")
    for mark in "-.+*/" if review else "-+*/":
        text = text.replace(mark, f" {mark} ")
    text = text.replace("`", "'")
    if review:
        text = text.replace(" ms .", " ms.").replace("Ms .", "Ms.")
    found = []
    for token in tokens(text):
        if token not in KNOWN and token.startswith("'"):
            found.append("'")
            token = token[1:]
        if token in KNOWN:
            found.append(token)
        else:
            token = token.lower()
            for plain, right in CONTRACTIONS.items():
                token = token.replace(plain, right)
            found += tokens(token)
    text = " ".join(found)
    for pattern, by in (("''", '"'), ("' '", '"'), ("``", '"'), (r"etc \.", "etc. "), (" etc ", " etc. ")):
        text = re.sub(pattern, by, text)
    return text.split()


def main():
    fixture.save_json("review_words", {
        "treebank": [[text, tokens(text)] for text in TREEBANK],
        "known": KNOWN,
        "reviews": [[text, words(text, True)] for text in REVIEWS],
        "sentences": [[text, words(text, False)] for text in SENTENCES],
    })


if __name__ == "__main__":
    main()

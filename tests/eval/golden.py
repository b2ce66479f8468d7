#!/usr/bin/env python3
"""What sacreBLEU says of small test sets: writes golden.json beside this file, or checks it.

    pip install sacrebleu
    python3 tests/eval/golden.py [--check]

golden.json holds `texts` (name -> hypotheses, references: one list a reference), and `cases`: a text, a metric with
its options by sacreBLEU's names, and what came of it: score, signature without its version, verbose (BLEU), and the
scores of the single segments (BLEU with effective order). Made with the version that stands under `sacrebleu`.
"""

import json
import pathlib
import sys

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

FILE = pathlib.Path(__file__).with_name("golden.json")

TEXTS = {
    "english": (
        ["The cat sat on the mat.", "It was raining all the day, so we stayed at home.", "He said: \"I do not know\"!",
         "A dog is running through the high grass.", "Two men are sitting on a bench (in the park)."],
        [["The cat is sitting on the mat.", "It rained all day, so we stayed at home.", "He said, \"I don't know!\"",
          "A dog runs through the tall grass.", "Two men sit on a bench in the park."]]),
    "german": (
        ["Ein Hund läuft über die grüne Wiese.", "Zwei Männer sitzen auf einer Bank.", "Das kostet 1.299,50 € pro Stück.",
         "Sie fährt mit dem Fahrrad zur Schule."],
        [["Ein Hund rennt über eine grüne Wiese.", "Zwei Männer sitzen auf der Bank.", "Es kostet 1.299,50 € das Stück.",
          "Sie fährt mit dem Rad in die Schule."]]),
    "french": (
        ["« Bonjour », dit-elle\u00a0; il n'a pas répondu.", "L'été dernier, j'ai vu la mer\u202f!", "C'est à 3\u00a0% près."],
        [["« Bonjour\u00a0», dit-elle, mais il n'a rien répondu.", "J'ai vu la mer l'été dernier\u202f!", "À 3\u00a0% près."]]),
    "chinese": (
        ["我今天早上喝了一杯咖啡。", "他们在公园里踢足球,非常高兴!", "这本书花了我25.5元。", "北京的冬天很冷。"],
        [["今天早上我喝了一杯咖啡。", "他们在公园踢足球,很高兴!", "我买这本书花了25.5元。", "冬天北京非常冷。"]]),
    "mixed_scripts": (
        ["我用 iPhone 拍照 — 真的!", "ＡＢＣ１２３は全角です。", "한국어 문장입니다, 그렇죠?", "𠀀𠀁 rare ‘signs’ … ①②③"],
        [["我用iPhone拍照 – 真的!", "ＡＢＣ１２３は全角だ。", "한국어 문장이다, 그렇지?", "𠀀𠀂 rare ‘signs’ … ①②④"]]),
    "japanese": (
        ["私は昨日、新しい本を買いました。", "猫が窓のそばで寝ている。"], [["昨日、私は新しい本を買った。", "窓のそばで猫が寝ています。"]]),
    "right_to_left": (
        ["قرأت الكتاب أمس، وكان جيدا.", "הילד משחק בגינה."], [["أمس قرأت الكتاب، وكان ممتعا.", "הילדה משחקת בגינה."]]),
    "hindi_thai": (
        ["मैं कल बाज़ार गया था।", "ฉันชอบกินข้าวผัด"], [["मैं कल बाज़ार गई थी।", "ฉันชอบข้าวผัดมาก"]]),
    "emoji": (
        ["good morning 😀😀 !", "I ❤️ you 👩‍👩‍👧", "🇫🇷 wins 2:1 🎉🎉🎉", "a🙂b🙂c"],
        [["good morning 😀!", "I ❤ you 👩‍👧", "🇫🇷 won 2:1 🎉🎉", "a🙂b 🙂c"]]),
    "punctuation": (
        ["It costs $1,000.50 -- or 2-3 times that...", "U.S. vs. U.K.: 5-4, 10,5 and .5 or 5.", "a/b_c{d}|e~f [g]\\h^i`j",
         "&quot;x&quot; &amp;lt; &lt;b&gt; &apos;", "<skipped>one-\ttwo", "9.,.,9 ..a,,b.. -1- --", "100% #1 @me *x* +y+ =z="],
        [["It costs $1000.50, or 2-3 times as much ...", "US vs. UK: 5-4; 10.5 and 0.5 or 5.", "a/b_c {d} | e~f[g]\\h^i`j",
          "\"x\" &lt; <b> '", "one- two", "9.,.9 ..a,,b.. -1- -", "100 % #1 @you *x* +y+ =z="]]),
    "empty_lines": (
        ["", "The second line is here.", "   ", "words where nothing was expected", "the end of it"],
        [["", "The second line is there.", "something", "", "the end of it all"]]),
    "all_empty": (["", ""], [["", ""]]),
    "empty_against_text": (["", ""], [["some text", "more text"]]),
    "short": (["a", "b c", "yes", "d e f"], [["a", "b d", "no", "d e f"]]),
    "one_line": (["the quick brown fox jumps over the dog"], [["the quick brown fox jumped over the lazy dog"]]),
    "one_word": (["word"], [["word"]]),
    "identical": (["This is one sentence of it.", "And this, too; is another one."],) + (
        [["This is one sentence of it.", "And this, too; is another one."]],),
    "nothing_in_common": (["aa bb cc dd ee", "ff gg hh"], [["xx yy zz ww vv", "uu tt ss"]]),
    "no_long_matches": (["red green blue white black", "one three two"], [["green red white blue grey", "two one three"]]),
    "longer": (["the the the the the the the the"], [["the cat is on the mat"]]),
    "two_references": (
        ["the man eats an apple", "she is very happy today .", "where is the next station?"],
        [["a man is eating an apple", "she is happy today .", "where's the next station?"],
         ["the man eats apples", "today , she is very very happy .", "Where is the nearest train station?"]]),
    "three_references": (
        ["wir gehen heute ins Kino", "das Wetter ist schön"],
        [["heute gehen wir ins Kino", "es ist schönes Wetter"], ["wir gehen heute Abend ins Kino", ""],
         ["ins Kino gehen wir heute", "das Wetter ist sehr schön"]]),
    "cases": (
        ["ΟΔΥΣΣΕΥΣ ΚΑΙ ΣΟΦΟΣ.", "İstanbul'da IŞIK", "STRASSE Straße", "ǅ Ⅷ Ⓐ ΑΣ'Α ΑΣ-"],
        [["Οδυσσευς και σοφος.", "i̇stanbul'da ışık", "strasse STRAßE", "ǆ ⅷ ⓐ ας'α ας-"]]),
    "white_space": (
        ["tab\tand  two   spaces ", "\u3000wide\u2003and\u00a0hard\u2028line\u0085next", "zero\u200bwidth\ufeffmark"],
        [["tab and two spaces", "wide and hard line next", "zero width mark"]]),
}

BLEU_OPTIONS = [{}, {"tokenize": "intl"}, {"tokenize": "char"}, {"tokenize": "zh"}, {"tokenize": "none"}, {"lowercase": True},
                {"tokenize": "intl", "lowercase": True}, {"smooth_method": "floor"}, {"smooth_method": "add-k"},
                {"smooth_method": "none"}, {"smooth_method": "floor", "smooth_value": 0.25},
                {"smooth_method": "add-k", "smooth_value": 0.5, "tokenize": "zh"}, {"effective_order": True}]
CHRF_OPTIONS = [{}, {"word_order": 2}, {"lowercase": True, "word_order": 2}, {"word_order": 1, "beta": 3, "char_order": 4}]


def score(metric, options, hypotheses, references):
    make = {"BLEU": BLEU, "CHRF": CHRF}[metric]
    scorer = make(**options)
    result = scorer.corpus_score(hypotheses, references)
    signature = "|".join(part for part in str(scorer.get_signature()).split("|") if not part.startswith("version:"))
    each = make(**{**options, **({"effective_order": True} if metric == "BLEU" else {})})
    case = {"metric": metric, "options": options, "name": result.name, "score": round(result.score, 8), "signature": signature,
            "segments": [round(each.sentence_score(h, r).score, 8) for h, *r in zip(hypotheses, *references)]}
    if metric == "BLEU":
        case["verbose"] = result._verbose
    return case


def compute():
    cases = []
    for name, (hypotheses, references) in TEXTS.items():
        for metric, all_options in (("BLEU", BLEU_OPTIONS), ("CHRF", CHRF_OPTIONS)):
            cases += [{"text": name, **score(metric, options, hypotheses, references)} for options in all_options]
    texts = {name: {"hypotheses": h, "references": r} for name, (h, r) in TEXTS.items()}
    return {"sacrebleu": sacrebleu.__version__, "texts": texts, "cases": cases}


def main():
    computed = compute()
    if sys.argv[1:] == ["--check"]:
        stored = json.loads(FILE.read_text())
        wrong = [ours for ours, theirs in zip(stored["cases"], computed["cases"]) if ours != theirs]
        wrong += [] if len(stored["cases"]) == len(computed["cases"]) and stored["texts"] == computed["texts"] else ["texts"]
        print(f"{len(stored['cases'])} cases, {len(wrong)} differ from sacreBLEU {sacrebleu.__version__}", *wrong, sep="\n")
        return 1 if wrong else 0
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in computed["cases"])
    texts = ",\n".join(f"{json.dumps(n)}: {json.dumps(t, ensure_ascii=False)}" for n, t in computed["texts"].items())
    FILE.write_text(f'{{"sacrebleu": "{computed["sacrebleu"]}",\n"texts": {{\n{texts}}},\n"cases": [\n{lines}]}}\n')
    print(f"{len(computed['cases'])} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())

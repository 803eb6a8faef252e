"""What the default penalty prices in right texts of eight languages, and in a sentence that is said ten times.

    python bench/simple_rule/languages.py VOCABULARY.gguf ...

A vocabulary is a GGUF file, weights or none. For each text: its tokens; how many of them would have a price when they
come, which should be few; and of the tokens of the ten sentences after the first one, how many would have a price. The
texts are ours, six sentences about a morning at a market.
"""

import argparse
from pathlib import Path

from lzsampler import Params, Sampler
from lzsampler.llama.vocabulary import Vocabulary, lz_separators
from lzsampler.params import PRESETS

TEXTS = {
    "German": "Am Morgen gehe ich zum Markt, weil die Äpfel dann frisch sind. Die Frau am Stand kennt mich lange. "
    "Sie fragt nach meinem Hund, nach der Arbeit und nach dem Garten. Ich kaufe Brot, Käse und ein Glas Honig. "
    "Auf dem Rückweg regnet es, und ich warte unter einem Dach. Zu Hause koche ich Kaffee und lese die Zeitung.",
    "Russian": "Утром я иду на рынок, потому что яблоки тогда свежие. Женщина за прилавком знает меня много лет. "
    "Она спрашивает о моей собаке, о работе и о саде. Я покупаю хлеб, сыр и банку мёда. "
    "На обратном пути идёт дождь, и я жду под крышей. Дома я варю кофе и читаю газету.",
    "Arabic": "في الصباح أذهب إلى السوق، لأن التفاح يكون طازجًا. المرأة التي تبيع تعرفني منذ سنوات. "
    "تسألني عن كلبي، وعن العمل، وعن الحديقة. أشتري الخبز والجبن وعلبة من العسل. "
    "في طريق العودة يهطل المطر، فأنتظر تحت سقف. في البيت أعد القهوة وأقرأ الجريدة.",
    "Hindi": "सुबह मैं बाज़ार जाता हूँ, क्योंकि तब सेब ताज़े होते हैं। दुकान की औरत मुझे कई सालों से जानती है। "
    "वह मेरे कुत्ते, मेरे काम और बगीचे के बारे में पूछती है। मैं रोटी, पनीर और शहद खरीदता हूँ। "
    "लौटते समय बारिश होती है, और मैं एक छत के नीचे रुकता हूँ। घर पर मैं कॉफ़ी बनाता हूँ और अख़बार पढ़ता हूँ।",
    "Thai": "ตอนเช้าฉันไปตลาดเพราะแอปเปิลยังสดอยู่ ผู้หญิงที่ขายของรู้จักฉันมาหลายปีแล้ว "
    "เธอถามถึงหมาของฉัน เรื่องงาน และเรื่องสวน ฉันซื้อขนมปัง ชีส และน้ำผึ้งหนึ่งขวด "
    "ระหว่างทางกลับฝนตก ฉันจึงรออยู่ใต้หลังคา ที่บ้านฉันชงกาแฟและอ่านหนังสือพิมพ์",
    "Chinese": "早上我去市场，因为那时候苹果很新鲜。卖东西的女人认识我很多年了。她问起我的狗、工作和花园。"
    "我买了面包、奶酪和一罐蜂蜜。回来的路上下雨了，我在屋檐下等着。到家以后我煮咖啡，看报纸。",
    "Japanese": "朝、りんごが新鮮なうちに市場へ行きます。店の女の人は何年も前から私を知っています。"
    "犬のこと、仕事のこと、庭のことを聞いてくれます。パンとチーズとはちみつを一びん買います。"
    "帰り道に雨が降り、屋根の下で待ちます。家でコーヒーをいれて、新聞を読みます。",
    "Korean": "아침에 나는 시장에 간다. 그때 사과가 신선하기 때문이다. 가게 아주머니는 나를 오래전부터 안다. "
    "내 개와 일과 정원에 대해 묻는다. 나는 빵과 치즈와 꿀 한 병을 산다. "
    "돌아오는 길에 비가 와서 지붕 아래에서 기다린다. 집에서 커피를 끓이고 신문을 읽는다.",
}
SAID_AGAIN = {
    "German": "Ich kaufe Brot, Käse und ein Glas Honig. ",
    "Russian": "Я покупаю хлеб, сыр и банку мёда. ",
    "Arabic": "أشتري الخبز والجبن وعلبة من العسل. ",
    "Hindi": "मैं रोटी, पनीर और शहद खरीदता हूँ। ",
    "Thai": "ฉันซื้อขนมปัง ชีส และน้ำผึ้งหนึ่งขวด ",
    "Chinese": "我买了面包、奶酪和一罐蜂蜜。",
    "Japanese": "パンとチーズとはちみつを一びん買います。",
    "Korean": "나는 빵과 치즈와 꿀 한 병을 산다. ",
}


def priced(vocabulary: Vocabulary, text: str) -> list[bool]:
    """Return for each token of a text whether it would have a price when it comes."""
    sampler = Sampler(vocabulary.n_vocab, Params(**PRESETS["default"], **lz_separators(vocabulary)))
    found = []
    for token in vocabulary.tokenize(text)[0].tolist():
        tokens, _, bias = sampler.edits()
        found.append(bool((bias[tokens == token] < 0).any()))
        sampler.accept(token)
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocabularies", type=Path, nargs="+", metavar="VOCABULARY.gguf")
    print("| vocabulary | language | tokens | priced | said again | priced |\n|---|---|---|---|---|---|")
    for path in parser.parse_args().vocabularies:
        vocabulary = Vocabulary(path)
        for language, text in TEXTS.items():
            right = priced(vocabulary, text)
            once = len(vocabulary.tokenize(SAID_AGAIN[language])[0])
            again = priced(vocabulary, SAID_AGAIN[language] * 10)[once:]
            print(f"| {path.stem} | {language} | {len(right)} | {sum(right)} | {len(again)} | {sum(again)} |")


if __name__ == "__main__":
    main()

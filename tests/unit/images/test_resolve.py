"""From an index to this machine's image."""

from __future__ import annotations

import json

from isulad_py.images import manifest
from isulad_py.model.errors import DataLoss, NotFound
from tests.images import Image, make_image, make_index
from tests.unit.images.stand import Stand, file_layer, refused, small_image


def silent_index(*images: Image) -> Image:
    """Its entries do not say for what they are."""
    index = make_index(images)
    document = json.loads(index.document)
    for entry in document["manifests"]:
        del entry["platform"]
    return Image(document=json.dumps(document).encode(), media_type=index.media_type, images=index.images)


def image_for(architecture: str) -> Image:
    return make_image([file_layer(architecture)], architecture=architecture)


async def test_of_entries_without_a_platform_the_configuration_tells(stand: Stand) -> None:
    ours = image_for("amd64")
    name = stand.registry.put("app", "v1", silent_index(image_for("s390x"), ours, image_for("amd64")))
    record = await stand.pull(name)
    assert record.id == ours.image_id
    assert record.manifest_digest == ours.digest


async def test_an_entry_that_says_to_be_ours_goes_before_those_that_say_nothing(stand: Stand) -> None:
    ours, silent = image_for("amd64"), small_image("silent")
    index = make_index([silent, ours])
    document = json.loads(index.document)
    del document["manifests"][0]["platform"]
    body = json.dumps(document).encode()
    name = stand.registry.put("app", "v1", Image(document=body, media_type=index.media_type, images=index.images))
    assert (await stand.pull(name)).id == ours.image_id


async def test_artifacts_without_a_platform_are_passed_over(stand: Stand) -> None:
    artifact = small_image("sbom")
    document = json.loads(artifact.document)
    document["config"]["mediaType"] = "application/vnd.example.sbom"
    sbom = Image(document=json.dumps(document).encode(), media_type=manifest.OCI_MANIFEST, blobs=artifact.blobs)
    ours = image_for("amd64")
    name = stand.registry.put("app", "v1", silent_index(sbom, ours))
    assert (await stand.pull(name)).id == ours.image_id


async def test_nothing_that_fits(stand: Stand) -> None:
    name = stand.registry.put("app", "v1", silent_index(image_for("s390x"), image_for("riscv64")))
    await refused(stand, name, NotFound, "nothing for linux on x86_64; there is nothing at all")


async def test_an_entry_of_another_size_than_the_index_says(stand: Stand) -> None:
    index = make_index([image_for("amd64")])
    document = json.loads(index.document)
    document["manifests"][0]["size"] += 1
    body = json.dumps(document).encode()
    name = stand.registry.put("app", "v1", Image(document=body, media_type=index.media_type, images=index.images))
    await refused(stand, name, DataLoss, "bytes, where the index says")

"""Keys by their names: what refers to `id` of another relation, and names that two share."""

from __future__ import annotations

from thalweg.estimate.cached.named_keys import named_keys


def test_what_refers_to_an_id_and_the_id_that_is_referred_to() -> None:
    found = named_keys(
        {
            "users": ["Id", "Reputation", "Views"],
            "posts": ["Id", "OwnerUserId", "PostTypeId", "Score"],
            "postLinks": ["Id", "PostId", "RelatedPostId", "LinkTypeId"],
        }
    )
    assert found == {
        "users": ["Id"],
        "posts": ["Id", "OwnerUserId"],
        "postLinks": ["PostId", "RelatedPostId"],  # nothing refers to its own id
    }


def test_the_longest_name_is_referred_to() -> None:
    found = named_keys(
        {"links": ["id"], "post_links": ["id"], "categories": ["id"],
         "x": ["post_link_id", "category_id"]}
    )  # fmt: skip
    assert found == {
        "links": [], "post_links": ["id"], "categories": ["id"],
        "x": ["post_link_id", "category_id"],
    }  # fmt: skip


def test_names_that_two_relations_share() -> None:
    found = named_keys({"flights": ["tailnum", "dest", "delay"], "planes": ["tailnum", "seats"]})
    assert found == {"flights": ["tailnum"], "planes": ["tailnum"]}
    assert named_keys({"t": ["a", "b"]}) == {"t": []}

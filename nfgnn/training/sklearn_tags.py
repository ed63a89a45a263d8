"""What scikit-learn must know about classifiers of nodes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sklearn.utils import Tags


def classifier_tags() -> "Tags":
    """Return the tags of a classifier that is fitted on a graph with labels in it."""
    from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

    return Tags(
        estimator_type="classifier",
        target_tags=TargetTags(required=False),
        classifier_tags=ClassifierTags(),
        input_tags=InputTags(two_d_array=False, sparse=True),
    )

"""What models add to the tables of the core."""

from __future__ import annotations

from thalweg.models import aggregates
from thalweg.models.functions import derivative
from thalweg.models.language.error_clause import ERROR
from thalweg.models.language.model_clause import MODEL
from thalweg.models.language.sample_clause import SAMPLE
from thalweg.models.language.select import ModelSelect
from thalweg.models.relations.combined import PARTS
from thalweg.models.relations.enveloped import PIECES
from thalweg.models.relations.predicted import IN_FORCE
from thalweg.models.relations.restored import SegmentView
from thalweg.models.relations.shown import STARTS
from thalweg.models.relations.state import ALIVE, DUE, SEGMENTS
from thalweg.models.relations.summed import BEGINS, SEEN, SUMS

AGGREGATES = aggregates.KINDS
FUNCTIONS = (derivative.FUNCTION,)
CLAUSES = (SAMPLE, ERROR)
SOURCE_CLAUSES = (MODEL,)
SLOTS = (DUE, ALIVE, SEGMENTS, STARTS, IN_FORCE, SUMS, SEEN, BEGINS, PIECES, PARTS)
SOURCES = (SegmentView(),)
SELECTS = (ModelSelect(),)

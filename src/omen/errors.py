"""The errors OMen raises on purpose. The command line catches `OmenError` once and prints it as one line."""


class OmenError(Exception):
    """Base of every error a user can cause or must know about."""


class InvalidInput(OmenError):
    """Something handed to OMen is not what it should be: a table, a label, an option."""


class InvalidTable(InvalidInput):
    """A table cannot be read as asked: says which file, where possible which row, and what would be right."""


class MissingColumn(InvalidTable):
    """A table has no column of the name that was asked for."""


class CannotWrite(OmenError):
    """The output cannot be written where it was asked for."""


class MissingDependency(OmenError):
    """An optional part (Spark, plotting, Java) is needed and not installed."""


class Denied(OmenError):
    """The access rules of the cluster do not allow it: says who may."""

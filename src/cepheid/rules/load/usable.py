"""What is left of rules without those that have a finding."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from cepheid.rules.findings import Finding
from cepheid.rules.template import Template


def usable(
    templates: Iterable[Template], findings: Iterable[Finding], before: Iterable[Template] = ()
) -> list[Template]:
    """The valid rules. An invalid rule is replaced by its last valid version: the rule of the same
    name, or the rules of a file that can't be read any more."""
    rows: dict[str, set[int]] = {}
    whole: set[str] = set()
    files: set[str] = set()
    for finding in findings:
        if finding.template is None:
            files.add(finding.file)
        elif finding.rows:
            rows.setdefault(finding.template, set()).update(finding.rows)
        else:
            whole.add(finding.template)
    right: list[Template] = []
    doubtful: set[str] = set()
    for template in templates:
        wrong = template.name in whole or template.origin in files
        good = [not wrong and template.number(n) not in rows.get(template.name, ())
                for n in range(len(template))]  # fmt: skip
        doubtful |= {
            name for name, is_good in zip(_names(template), good, strict=True) if not is_good
        }
        if all(good):
            right.append(template)
        elif any(good):
            right.append(template.where(pa.chunked_array([good])))
    taken = {name for template in right for name in _names(template)}
    for template in before:
        if not len(template):
            continue
        lost = template.query.name in files or template.origin in files or template.name in whole
        stays = [name not in taken and (lost or name in doubtful) for name in _names(template)]
        if all(stays):
            right.append(template)
        elif any(stays):
            right.append(template.where(pa.chunked_array([stays])))
    return right


def _names(template: Template) -> list[str]:
    return [str(name) for name in template.names]

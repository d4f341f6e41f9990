"""Why a query matched or not: what each part of it lets through, found by running variations."""

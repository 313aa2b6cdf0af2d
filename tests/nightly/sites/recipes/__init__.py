"""The site builds, in the order of the table."""

from recipes import apps, documentation, generators, handmade

BUILDS = [*handmade.BUILDS, *documentation.BUILDS, *generators.BUILDS, *apps.BUILDS]

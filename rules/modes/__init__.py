"""Modes: training and evaluation, gradients on and off."""

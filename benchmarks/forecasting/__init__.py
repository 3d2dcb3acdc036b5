"""Forecasts of time series by mixers, beside the field's baselines and floors."""

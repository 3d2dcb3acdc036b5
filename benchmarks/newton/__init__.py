"""The flagship: do models that predict orbits learn the law behind them?"""

"""The packages of the benchmark, and the programs that use them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Package:
    """A package on the Python package index.

    Attributes:
      name: its name there.
      version: the version that is installed.
      programs: the files in `drivers`, without ``.py``, and what of the package they run.
      others: further requirements.
      with_dependencies: whether the requirements of the package are installed. False if they
        exclude the versions of TensorFlow and Keras that are measured.
    """

    name: str
    version: str
    programs: dict[str, str]
    others: tuple[str, ...] = ()
    with_dependencies: bool = True


PACKAGES = (
    Package(
        "aeon",
        "1.6.0",
        {
            "aeon_regressor": "RecurrentRegressor",
            "aeon_bidirectional_gru": "AEBiGRUClusterer",
            "aeon_dilated": "AEDRNNClusterer",
            "aeon_deepar": "DeepARForecaster",
        },
    ),
    Package(
        "dlomix",
        "0.3.1",
        {
            "dlomix_retention_time": "retention time",
            "dlomix_intensity": "intensity",
        },
    ),
    Package("impsy", "1.2.1", {"impsy_music": "train"}),
    Package(
        "tfts",
        "0.0.23",
        {
            "tfts_rnn": "rnn",
            "tfts_seq2seq": "seq2seq",
            "tfts_deepar": "deep_ar",
        },
    ),
    Package(
        "xhydro-lstm",
        "0.1.1",
        {"xhydro_streamflow": "regional model"},
        others=("scikit-learn", "xarray"),
        with_dependencies=False,  # they are more than a hundred packages
    ),
    Package(
        "tracksegnet",
        "1.3.0",
        {"tracksegnet_diffusion": "training"},
        others=("more-itertools", "pandas", "scipy", "seaborn", "tqdm"),
        with_dependencies=False,
    ),
    Package("wordcraft", "0.1", {"wordcraft_text": "training"}),
    Package("sotam", "0.2.2", {"sotam_prices": "training"}),
    Package("rienet", "1.1.13", {"rienet_portfolio": "RIEnetLayer"}),
    # Keras Tuner needs TensorBoard.
    Package("lstm-sam-tl", "0.2.4", {"lstm_sam_tl_search": "TT_model"}, others=("tensorboard",)),
    # Its version of statsmodels needs pandas 2.
    Package("tsgm", "0.1.0", {"tsgm_gan": "ConditionalGAN"}, others=("pandas<3",)),
    Package("sktime", "1.2.0", {"sktime_lstm_fcn": "LSTMFCNClassifier"}),
)

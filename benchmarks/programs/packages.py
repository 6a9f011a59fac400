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
        "0",
        {
            "aeon_regressor": "RecurrentRegressor",
            "aeon_bidirectional_gru": "AEBiGRUClusterer",
            "aeon_dilated": "AEDRNNClusterer",
            "aeon_deepar": "DeepARForecaster",
        },
    ),
    Package(
        "dlomix",
        "0",
        {
            "dlomix_retention_time": "retention time",
            "dlomix_intensity": "intensity",
        },
    ),
    Package("impsy", "0", {"impsy_music": "train"}),
    Package(
        "tfts",
        "0",
        {
            "tfts_rnn": "rnn",
            "tfts_seq2seq": "seq2seq",
            "tfts_deepar": "deep_ar",
        },
    ),
    Package("xhydro-lstm", "0", {"xhydro_streamflow": "regional model"}),
    Package("tracksegnet", "0", {"tracksegnet_diffusion": "training"}),
    Package("wordcraft", "0", {"wordcraft_text": "training"}),
    Package("sotam", "0", {"sotam_prices": "training"}),
    Package("portfoliorisk", "0", {"portfoliorisk_volatility": "forecast"}),
    Package("rienet", "0", {"rienet_portfolio": "RIEnetLayer"}),
    Package("lstm-sam-tl", "0", {"lstm_sam_tl_search": "search"}),
    Package("tsgm", "0", {"tsgm_gan": "ConditionalGAN"}),
    Package("sktime", "0", {"sktime_lstm_fcn": "LSTMFCNClassifier"}),
)

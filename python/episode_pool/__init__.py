"""Streams LeRobotDataset v3 to PyTorch trainers, every frame exactly once an epoch.

    from episode_pool import StreamingDataset

    dataset = StreamingDataset("lerobot/pusht", delta_timestamps={"action": [0.0, 0.1]})
    for batch in torch.utils.data.DataLoader(dataset, batch_size=16, num_workers=4):
        ...

`Loader(dataset, batch_size=16, num_workers=4)` gives the same batches faster, without worker processes.
"""

from ._coverage import CoverageReport
from ._dataset import SampleStream, StreamingDataset
from ._loader import BatchStream, Loader
from ._meta import Metadata

__all__ = ["BatchStream", "CoverageReport", "Loader", "Metadata", "SampleStream", "StreamingDataset"]

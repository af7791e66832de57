"""Collective operations that all ranks reach, and such that only some do."""

import torch
import torch.distributed as dist


def average(loss, rank, world_size):
    if rank == 0:
        dist.all_reduce(loss)  # expect: collective-under-rank-guard
        print(loss.item() / world_size)


def metrics(accelerator, predictions, references, metric):
    if accelerator.is_main_process:
        predictions, references = accelerator.gather_for_metrics((predictions, references))  # expect: collective-under-rank-guard
        metric.add_batch(predictions=predictions, references=references)


def after_leaving(model, path):
    if dist.get_rank() != 0:
        return
    torch.save(model.state_dict(), path)
    dist.barrier()  # expect: collective-under-rank-guard


# What is right.


def on_all_ranks(loss, rank, world_size):
    dist.all_reduce(loss)
    if rank == 0:
        print(loss.item() / world_size)


def first_downloads(local_rank, download):
    if local_rank not in [-1, 0]:
        dist.barrier()
    download()
    if local_rank == 0:
        dist.barrier()


def in_both_branches(rank, tensor, world_size):
    if rank == 0:
        parts = [torch.zeros_like(tensor) for _ in range(world_size)]
        dist.gather(tensor, parts, dst=0)
    else:
        dist.gather(tensor, dst=0)


def only_if_distributed(world_size, loss):
    if world_size > 1:
        dist.all_reduce(loss)


def in_a_group(rank, leaders, loss):
    if rank in (0, 8):
        dist.all_reduce(loss, group=leaders)


def writes_on_the_first(accelerator, model, path):
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        torch.save(accelerator.unwrap_model(model).state_dict(), path)


def not_a_collective(accelerator, index, table, rank):
    if rank == 0:
        return table.gather(1, index)
    return None


def distributed_or_not(rank, loss):
    if rank is not None and dist.is_initialized():
        dist.all_reduce(loss)


def rank_is_minus_one_alone(rank, stop: bool):
    if rank != -1:
        shared = [stop if rank == 0 else None]
        dist.broadcast_object_list(shared, 0)
        stop = shared[0]
    return stop


def state_of_a_plain_run(accelerator, folder):
    if accelerator.is_main_process:
        accelerator.save_state(folder)


def first_rank_leads(rank, optimizer, signal, loss_of):
    """Rank 0 runs LBFGS; each evaluation of its closure wakes the others, which wait below."""

    def closure():
        if rank == 0:
            signal.fill_(1)
            dist.broadcast(signal, src=0)
        return loss_of()

    if rank == 0:
        optimizer.step(closure)
        signal.fill_(0)
        dist.broadcast(signal, src=0)
    else:
        while True:
            dist.broadcast(signal, src=0)
            if signal.item() == 0:
                break
            closure()


class FirstRankFirst:
    """Entered by the first rank at once, by the others when it has left."""

    def __init__(self, rank):
        self.rank = rank

    def __enter__(self):
        if self.rank > 0:
            dist.barrier()

    def __exit__(self, *failure):
        if self.rank == 0:
            dist.barrier()


class Logger:
    def __init__(self, rank):
        self.rank = rank

    def __exit__(self, *failure):
        if self.rank == 0:
            dist.barrier()  # expect: collective-under-rank-guard

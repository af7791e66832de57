"""Sequence labelling: every backward pass keeps its graph, and the card fills up."""


def train_epoch(model, batches, optimizer):
    model.train()
    for words, tags in batches:
        optimizer.zero_grad()
        loss = model(words, tags)
        loss.backward(retain_graph=True)  # expect: retain-graph-misuse
        optimizer.step()

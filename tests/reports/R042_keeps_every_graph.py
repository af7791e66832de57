"""Sequence labelling: every backward pass keeps its graph, and the card fills up."""


def train_epoch(tagger, batches, optimizer):
    tagger.train()
    for words, tags in batches:
        optimizer.zero_grad()
        loss = tagger(words, tags)
        loss.backward(retain_graph=True)  # expect: retain-graph-misuse
        optimizer.step()

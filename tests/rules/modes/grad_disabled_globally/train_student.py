import teacher


def train(student, loader, optimizer):
    for image in loader:
        optimizer.zero_grad()
        (student(image) - teacher.Teacher()(image)).square().mean().backward()
        optimizer.step()

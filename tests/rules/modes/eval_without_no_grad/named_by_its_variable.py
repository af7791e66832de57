"""A model that only the variable names: the function that makes it is not worth following."""

ARCHITECTURES = {}


def get_model(settings):
    make = ARCHITECTURES[settings["name"]]
    return make(settings["width"])


def validate(settings, val_loader):
    model = get_model(settings)
    model.eval()
    for images, labels in val_loader:
        predicted = model(images).argmax(1)  # expect: eval-without-no-grad
        print((predicted == labels).sum().item())

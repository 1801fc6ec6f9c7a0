"""The tasks of the preset demo. Pure data."""

PRESET_TASK_IDS: tuple[str, ...] = (
    "train_01_open_settings",
    "train_02_enable_wifi",
    "train_03_max_brightness",
    "train_04_open_chrome",
    "train_05_airplane_mode",
    "train_06_check_battery",
    "train_08_enable_bluetooth",
    "train_09_disable_wifi",
    "train_10_disable_bluetooth",
    "train_12_open_wifi_settings",
    "train_13_open_bluetooth_settings",
    "train_14_open_display_settings",
    "train_15_open_sound_settings",
    "train_22_open_dialer",
    "train_23_open_messages",
    "train_24_open_camera",
    "train_25_open_gallery",
    "train_53_open_contacts",
)
"""Apps to open and settings within two or three touches: what the small policy is shown before RL,
trained on and evaluated with.

Left out: sliders to a middle, fields and lists that must be scrolled far, which it has no turns
for, and what is solved without looking (home, recents, shade). docs/decisions/policy.md says how
well they are learnt."""

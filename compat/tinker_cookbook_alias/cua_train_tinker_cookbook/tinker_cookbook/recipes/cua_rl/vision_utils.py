"""The recipe's functions of messages and screenshots."""

from producer.cua_recipe import convert_openai_responses_to_message, load_image_from_data_uri

__all__ = ["convert_openai_responses_to_message", "load_image_from_data_uri"]
